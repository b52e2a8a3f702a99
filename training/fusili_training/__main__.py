"""`torchrun ... -m fusili_training RECIPE`: `fusili-mir train` on every rank."""

import sys

from fusili_mir.cli.main import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
