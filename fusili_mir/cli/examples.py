"""Examples of each command, shown at the end of its help."""

from __future__ import annotations

__all__ = ["EXAMPLES", "epilog"]

EXAMPLES = {
    "align": (
        "fusili-mir align piece.musicxml recording.wav -o out",
        "fusili-mir align scan.pdf --pages 3-7 concert.mp4 --start 1:15 --end 4:40 -o out",
        "fusili-mir align piece.musicxml recording.wav -o out --anchors 17=42.5 --anchors 33=1:20",
        "fusili-mir align page1.png page2.png recording.mp3 -o out --format frames",
        "curl -s https://example.org/song.ogg | fusili-mir align song.mei - -o out",
    ),
    "align-many": (
        "fusili-mir align-many pairs.csv -o results",
        "fusili-mir align-many pairs.csv -o results --jobs 4 --format notes --format html",
        "fusili-mir align-many pairs.csv -o results --transpose 0 --repeats as_written",
        "fusili-mir align-many tapes --match archive -o results",
        "fusili-mir align-many pairs.csv -o /shared/results --dask tcp://10.0.0.1:8786",
    ),
    "demo": ("fusili-mir demo", "fusili-mir demo -o elsewhere --force"),
    "evaluate": (
        "fusili-mir evaluate bundle data",
        "fusili-mir evaluate --matrix matrices/*.npy data",
    ),
    "export": ("fusili-mir export runs/small-hybrid/best.pt -o bundle --licence CC-BY-4.0",),
    "index": (
        "fusili-mir index scores recordings -o archive",
        "fusili-mir index new-scans -o archive --jobs 4",
    ),
    "info": ("fusili-mir info", "fusili-mir info bundle"),
    "pages": (
        "fusili-mir pages piece.musicxml -o out --font Leland",
        "fusili-mir pages scan.pdf -o out --pages 1,3-5 --dpi 300",
    ),
    "point": (
        "fusili-mir point piece.musicxml recording.wav --time 1:12.5",
        "fusili-mir point scan.pdf recording.mp3 --at 2:410,600 --top 3",
    ),
    "render": (
        "fusili-mir render scores -o data --licence CC0-1.0 --contact-sheet sheet.png",
        "fusili-mir render corpus.csv -o data --recipe recipe.toml --jobs 8",
    ),
    "search": (
        "fusili-mir search archive excerpt.wav",
        "fusili-mir search archive concert.flac --start 1:15 --end 1:25 --kind score",
        "fusili-mir search archive photo.jpg --open",
        "fusili-mir search archive scan.pdf --box 3:120,400,900,620 --json",
    ),
    "train": (
        "fusili-mir train small-hybrid --data data",
        "fusili-mir train recipe.toml --override loss.alpha=0.5 --dry-run",
    ),
    "view": (
        "fusili-mir view out",
        "fusili-mir view out-1933 out-2006 -o both.html",
    ),
}
"""Command -> lines that work as they are, but for the names of files."""


def epilog(name: str) -> str:
    r"""Return the examples of a command for its help; ``\b`` lets click keep the lines as they are.

    >>> epilog("info").splitlines()[2]
    '  fusili-mir info'
    """
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[name])))
