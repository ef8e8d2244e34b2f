"""Ray's own schema and reader accept the cluster files."""

import pytest
from tests.commands import ROOT
from tests.later import needs

yaml = pytest.importorskip("yaml")
pytestmark = needs("ray")

FOLDER = ROOT / "cluster"


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


@pytest.mark.parametrize("name", ["aws.yaml", "machines.yaml"])
def test_launcher_files_fit_rays_schema(name):
    from ray.autoscaler._private.util import prepare_config, validate_config

    whole = prepare_config(read(name))
    validate_config(whole)
    kinds = whole["available_node_types"]
    assert sum(kind.get("max_workers", 0) for kind in kinds.values()) >= whole["max_workers"]


def test_the_autoscaler_reads_the_kubernetes_file():
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
    from ray.autoscaler._private.util import validate_config

    cluster = read("kubernetes.yaml")
    cluster["metadata"]["namespace"] = "default"
    config = _derive_autoscaling_config_from_ray_cr(cluster)
    validate_config(config)
    kinds = config["available_node_types"]
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert kinds["headgroup"]["resources"]["CPU"] == 0
    assert kinds["workers"]["resources"]["CPU"] == 32
    assert (kinds["workers"]["min_workers"], kinds["workers"]["max_workers"]) == (0, 16)


def test_files_and_constraints_name_one_version_of_ray():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    (pinned,) = [line.partition("==")[2] for line in lines if line.startswith("ray==")]
    assert read("kubernetes.yaml")["spec"]["rayVersion"] == pinned
    assert f"rayproject/ray:{pinned}-" in (FOLDER / "kubernetes.yaml").read_text()
