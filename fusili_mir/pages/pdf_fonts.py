"""Fonts for text of a PDF that does not carry them itself: those inside PDFium, on every machine."""

from __future__ import annotations

import functools

import pypdfium2.raw as pdfium

__all__ = ["use_built_in_fonts"]


@functools.cache
def use_built_in_fonts() -> object:
    """Keep PDFium from looking for fonts on this machine, from now on and for the whole process.

    Returns
    -------
    object
        What PDFium asks for fonts. It must not be freed, so the cache keeps it.
    """
    no_fonts = pdfium.FPDF_SYSFONTINFO(version=1)  # without any function, it has no fonts to offer
    pdfium.FPDF_SetSystemFontInfo(no_fonts)
    return no_fonts
