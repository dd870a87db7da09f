"""What an export can become: ONNX, a program of torch.export (.pt2), ExecuTorch (.pte). One job class each."""
