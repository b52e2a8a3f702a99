"""Losses: the FuSiLi similarity and its gradient, InfoNCE, and gathering across processes."""
