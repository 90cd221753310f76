"""The name of the machine, or of the container, that a process runs in."""

import pytest

from sparkmirror.machine import container_id, machine_name, named

ID = "3f2a9c81d0b2" + "0" * 52
OVERLAY = "0 0:40 / / rw - overlay overlay rw\n"


def mounts(source: str, place: str) -> str:
    return f"{OVERLAY}501 488 254:1 {source} {place} rw,relatime - ext4 /dev/vda1 rw\n"


@pytest.mark.parametrize(
    "text",
    [
        mounts(f"/var/lib/docker/containers/{ID}/hostname", "/etc/hostname"),
        mounts(f"/containers/storage/overlay-containers/{ID}/userdata/hosts", "/etc/hosts"),
        mounts(f"/io.containerd.grpc.v1.cri/sandboxes/{ID}/resolv.conf", "/etc/resolv.conf"),
    ],
    ids=["docker", "podman", "containerd"],
)
def test_a_container_is_known_by_the_files_that_its_runtime_mounts(text: str) -> None:
    assert container_id(text) == "3f2a9c81d0b2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        OVERLAY,
        mounts("/etc/hostname", "/etc/hostname"),
        mounts(f"/var/lib/docker/overlay2/{ID}/merged", "/data"),
        mounts("/var/lib/kubelet/pods/0d5c1e0a-6d4e-4c0e-a3a5-1a1c43e5ad6d/etc-hosts", "/etc/hosts"),
    ],
)
def test_another_process_is_in_none(text: str) -> None:
    assert container_id(text) is None


def test_two_containers_with_the_name_of_one_host_differ() -> None:
    assert named("mirror-0", None) == "mirror-0"
    assert named("mirror-0", "3f2a9c81d0b2") == "mirror-0 (container 3f2a9c81d0b2)"


def test_a_host_name_that_is_the_id_says_it_once() -> None:
    assert named("3f2a9c81d0b2", "3f2a9c81d0b2") == "3f2a9c81d0b2"


def test_this_machine_has_a_name() -> None:
    assert machine_name()
