"""What scontrol prints, as 22.05 does."""

import pytest

from wattline.observing.machines import read_licenses, read_machines, read_settings, read_switches

# From a real `scontrol show node`, shortened.
NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=1 CPUEfctv=16 CPUTot=16 CPULoad=6.88
   Gres=gpu:h100:8(S:0-1)
   NodeAddr=127.0.0.1 NodeHostName=vm Port=56543 Version=22.05.8
   OS=Linux 6.18 #1 SMP PREEMPT_DYNAMIC @0
   State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=main,debug
   CfgTRES=cpu=16,mem=4000M,billing=16,gres/gpu=8

NodeName=cpu1 CPUTot=64 Gres=(null) State=IDLE+DRAIN
"""


def test_a_node_is_read_from_one_line_or_from_many() -> None:
    for text in (NODES, NODES.replace("\n   ", " ")):
        machines = read_machines(text)
        assert list(machines) == ["n1", "cpu1"]
        one, other = machines.values()
        assert (one.gpus, one.model, one.cpus, one.partitions) == (8, "h100", 16, ("main", "debug"))
        assert one.is_up
        assert (other.gpus, other.is_up) == (0, False)


@pytest.mark.parametrize(
    ("gres", "gpus", "model"),
    [
        ("gpu:8", 8, ""),
        ("gpu", 1, ""),
        ("gpu:a100", 1, "a100"),
        ("gpu:a100:4(S:0,1)", 4, "a100"),
        ("gpu:a100:4,gpu:h100:2", 6, ""),
        ("gpu:nvidia_h100_80gb_hbm3:8,shard:32", 8, "nvidia_h100_80gb_hbm3"),
        ("shard:4", 0, ""),
        ("(null)", 0, ""),
    ],
)
def test_gpus_are_counted_however_gres_names_them(gres: str, gpus: int, model: str) -> None:
    (machine,) = read_machines(f"NodeName=n1 CPUTot=8 Gres={gres} State=IDLE").values()
    assert (machine.gpus, machine.model) == (gpus, model)


def test_the_lowest_switch_above_each_node_is_found() -> None:
    tree = (
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=leaf1\n"
    )
    assert read_switches(tree) == {"n1": "leaf1", "n2": "leaf1"}
    assert read_switches("No topology information available") == {}


def test_licenses_and_settings_are_read() -> None:
    (power,) = read_licenses("LicenseName=kilowatts Total=100 Used=50 Free=50 Reserved=0 Remote=no")
    assert (power.name, power.used, power.total) == ("kilowatts", 50, 100)
    settings = read_settings(
        "Configuration data as of 1794972351\nAccountingStorageType   = accounting_storage/none\n"
        "ClusterName             = test\nSLURM_VERSION           = 22.05.8\n"
    )
    assert (settings.cluster, settings.clock_at) == ("test", 1794972351.0)
    assert settings.accounting.endswith("/none")
