pytest_plugins = ["tiny_models", "loopback_hub"]
