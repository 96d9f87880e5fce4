"""``python -m regcal`` is the command line."""

from regcal.cli import main

if __name__ == "__main__":
    main()
