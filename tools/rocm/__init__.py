"""AMD's own runtime without a card: the parts of tools/real_rocm.py."""
