"""ultralytics: the smallest of each generation and task."""

from __future__ import annotations

import torch
import torchvision_operators

torchvision_operators.install()
from ultralytics.nn import tasks  # noqa: E402

NETWORKS = {
    "yolov3-tiny": "DetectionModel", "yolov5n": "DetectionModel", "yolov6n": "DetectionModel", "yolov8n": "DetectionModel",
    "yolov8n-p6": "DetectionModel", "yolov8n-seg": "SegmentationModel", "yolov8n-pose": "PoseModel", "yolov8n-obb": "OBBModel",
    "yolov8n-cls": "ClassificationModel", "yolov9t": "DetectionModel", "yolov10n": "DetectionModel", "yolo11n": "DetectionModel",
    "yolo11n-seg": "SegmentationModel", "yolo11n-pose": "PoseModel", "yolo11n-cls": "ClassificationModel", "yolo12n": "DetectionModel",
    "yolo26n": "DetectionModel", "rtdetr-resnet50": "RTDETRDetectionModel",
}  # fmt: skip


def builder(name: str):
    def build():
        model = getattr(tasks, NETWORKS[name])(f"{name}.yaml", verbose=False)
        return model, (torch.rand(2, 3, 64, 96 if NETWORKS[name] != "ClassificationModel" else 64),)

    return build


MODELS = {name: builder(name) for name in NETWORKS}
