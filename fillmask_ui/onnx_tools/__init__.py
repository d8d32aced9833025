"""Work on ONNX graphs: export, share weights, quantize."""
