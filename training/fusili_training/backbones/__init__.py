"""The encoders behind one interface: an image tower, an audio tower, and the places of their tokens."""

from fusili_training.backbones.catalogue import BACKBONES, build_backbone
from fusili_training.backbones.interface import (
    AudioGeometry,
    AudioTower,
    Backbone,
    ImageGeometry,
    ImageTower,
    Tokens,
)

__all__ = [
    "BACKBONES",
    "AudioGeometry",
    "AudioTower",
    "Backbone",
    "ImageGeometry",
    "ImageTower",
    "Tokens",
    "build_backbone",
]
