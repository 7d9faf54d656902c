"""Has the packages aics-tlog and aics-witness verify an exported log.

    python verify.py FOLDER LOG_KEY [--witness-key KEY ...]

FOLDER has `checkpoint`, the tiles and entry bundles under `tile/`, proof files as
`proofs/<index>.tlog-proof`, and optionally requests to a witness, in order, under `requests/`. Keys are
verifier keys (c2sp.org/signed-note); the name of the log's key is its origin. Each witness key must
have cosigned `checkpoint`.

Exit 0: everything verifies. What a new witness answered to the requests is on standard output, its
verifier key first. Exit 1: something does not; standard error says what.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from aics_tlog import FileSystemTileReader, VerifiedTileReader, audit_tiles, parse_note, parse_vkey
from aics_tlog import tree_root_from_tiles, verify_checkpoint, verify_leaf_inclusion
from aics_tlog.note import b64_decode
from aics_witness.config import LogConfig
from aics_witness.service import Witness, WitnessError
from aics_witness.store import WitnessStore
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def demand(condition, problem):
    if not condition:
        raise ValueError(problem)


def checkpoint_of(note, log_key, witness_keys=()):
    """The size and root that the log signed, and every witness cosigned."""
    result = verify_checkpoint(
        parse_note(note), log_key, list(witness_keys), len(witness_keys), expected_origin=log_key.name
    )
    demand(result.ok, result.error)
    return result.size, result.root


def verify_proof(file, log_key, tiles, log_size):
    """One proof file, its entry and its checkpoint, which may be older than the exported one."""
    head, _, note = file.read_bytes().partition(b"\n\n")
    version, *lines = head.decode("ascii").split("\n")
    demand(version == "c2sp.org/tlog-proof@v1", "not a proof file")
    if lines and lines[0].startswith("extra "):
        b64_decode(lines.pop(0).removeprefix("extra "))
    index = re.fullmatch("index (0|[1-9][0-9]*)", lines.pop(0) if lines else "")
    demand(index and file.stem == index[1], "the index is not that of the file name")
    size, root = checkpoint_of(note, log_key)
    demand(size <= log_size, "the checkpoint is newer than the exported one")
    demand(tree_root_from_tiles(tiles, size, log_size) == root, "the checkpoint is of another tree")
    proof = [b64_decode(line) for line in lines]
    entry = tiles.entry(int(index[1]))
    demand(verify_leaf_inclusion(entry, int(index[1]), size, proof, root), "the proof does not verify")


def answers_of_a_witness(requests, log_key):
    """The cosignatures of a new witness that gets the requests in order."""
    with tempfile.TemporaryDirectory() as folder:
        store = WitnessStore(Path(folder) / "witness.db", create=True)
        logs = [LogConfig(log_key.name, (log_key,))]
        witness = Witness("witness.example/outside", Ed25519PrivateKey.generate(), store, logs)
        answers = [witness.add_checkpoint(request.read_bytes()).decode() for request in requests]
        store.close()
        return witness.vkey_text + "\n" + "".join(answers)


def verify(folder, log_key, witness_keys):
    size, root = checkpoint_of((folder / "checkpoint").read_bytes(), log_key, witness_keys)
    reader = FileSystemTileReader(folder)
    audit_tiles(reader, size, root)
    tiles = VerifiedTileReader(reader, size, root)
    for file in sorted((folder / "proofs").glob("*")):
        try:
            verify_proof(file, log_key, tiles, size)
        except ValueError as problem:
            raise ValueError(f"{file.name}: {problem}") from None
    return answers_of_a_witness(sorted((folder / "requests").glob("*")), log_key)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("log_key", type=parse_vkey)
    parser.add_argument("--witness-key", type=parse_vkey, action="append", default=[])
    arguments = parser.parse_args()
    try:
        print(verify(arguments.folder, arguments.log_key, arguments.witness_key), end="")
    except (ValueError, OSError, WitnessError) as problem:
        sys.exit(f"refused: {problem}")


if __name__ == "__main__":
    main()
