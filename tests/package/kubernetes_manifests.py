"""Reads the manifests of `deploy/kubernetes` as `kubectl apply -k` would send them."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.package.container_process import Container

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "deploy" / "kubernetes"
OVERLAYS: Final = (
    "overlays/dedicated",
    "overlays/dedicated/verify",
    "overlays/workers",
    "overlays/executors",
)
POD: Final = MANIFESTS / "pod" / "mm2-pod.yaml"

Manifest = Mapping[str, Any]


def applied(folder: str) -> list[Manifest]:
    """Return the manifests of an overlay. The test is skipped where nothing reads kustomizations."""
    if shutil.which("kubectl") is None:
        pytest.skip("not run: needs kubectl, which builds kustomizations without a cluster")
    command = ["kubectl", "kustomize", str(MANIFESTS / folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return list(yaml.safe_load_all(built.stdout))


def one(manifests: Iterable[Manifest], kind: str) -> Manifest:
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def pod_spec(manifest: Manifest) -> Manifest:
    spec: Manifest = manifest["spec"]
    return spec if manifest["kind"] == "Pod" else spec["template"]["spec"]


def container_of(
    spec: Manifest,
    manifests: Iterable[Manifest],
    secrets: Mapping[str, Mapping[str, str]],
    fields: Mapping[str, str],
) -> Container:
    """The container of a pod: `fields` are what the downward API knows of it, `secrets` are there already."""
    (said,) = spec["containers"]
    configs = {it["metadata"]["name"]: it["data"] for it in manifests if it["kind"] == "ConfigMap"}
    contents: dict[str, Mapping[str, str]] = {}
    for volume in spec["volumes"]:
        if "configMap" in volume:
            contents[volume["name"]] = configs[volume["configMap"]["name"]]
        elif "secret" in volume:
            contents[volume["name"]] = secrets[volume["secret"]["secretName"]]
    return Container(
        [*said.get("command", ()), *said.get("args", ())],
        {it["name"]: fields[it["valueFrom"]["fieldRef"]["fieldPath"]] for it in said.get("env", ())},
        {it["mountPath"]: contents[it["name"]] for it in said["volumeMounts"] if it["name"] in contents},
    )
