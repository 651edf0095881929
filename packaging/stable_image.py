#!/usr/bin/env python3
"""Copies an image for docker without what differs from build to build: the id of the container in
which it was made, and that container's host name. Members have no times.

usage: stable_image.py IN.tar OUT.tar
"""

import hashlib
import io
import json
import sys
import tarfile


def member(name, size):
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o444
    return info


def main(source, target):
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as new:
        (image,) = json.load(old.extractfile("manifest.json"))
        config = json.load(old.extractfile(image["Config"]))
        config.pop("container", None)
        for part in ("config", "container_config"):
            config.get(part, {}).pop("Hostname", None)
        written = json.dumps(config, sort_keys=True).encode()
        image["Config"] = hashlib.sha256(written).hexdigest() + ".json"
        manifest = json.dumps([image], sort_keys=True).encode()
        for name, content in ((image["Config"], written), ("manifest.json", manifest)):
            new.addfile(member(name, len(content)), io.BytesIO(content))
        for layer in image["Layers"]:
            new.addfile(member(layer, old.getmember(layer).size), old.extractfile(layer))


if __name__ == "__main__":
    main(*sys.argv[1:])
