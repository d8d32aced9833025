"""Many masks filled step by step, each step with the distributions that it rests on."""
