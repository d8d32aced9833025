"""Components of options: one of any configuration, and where an evaluation is computed."""

import functools
from collections.abc import Mapping
from typing import Any

import gradio as gr

from fillmask_ui.options import all_options
from fillmask_ui.runs.engines import LOCAL, EngineChoice, installed_engines
from fillmask_ui.ui.components import QUIET

Controls = dict[str, Any]  # components by the names of the fields


def option_control(owner: type, name: str, **overrides: Any) -> Any:
    """The component of an option of a configuration, with some of its settings overridden.

    It has no bounds, as `gr.Number` would refuse or round a value silently, and cannot be blank: 0
    stands for a number not given.
    """
    (option,) = (option for option in all_options(owner) if option.name == name)
    settings = {"value": option.default, "label": option.label, "info": option.help, **overrides}
    is_number = option.kind in (int, float)
    if is_number and option.default is None:
        settings = {**settings, "value": 0, "info": f"{option.help} 0: not given.", **overrides}
    if option.kind is bool:
        # Beside others it would shrink to a line.
        return gr.Checkbox(**{"min_width": 240, **settings})
    if option.choices:
        return gr.Radio(list(option.choices), **settings)
    return gr.Number(**settings) if is_number else gr.Textbox(max_lines=1, **settings)


def device_controls(*, visible: bool) -> Controls:
    """Where ONNX Runtime computes both models, and the options of its execution provider."""
    from fillmask_ui.models.onnx_devices import devices_here

    here = [(name, name) for name in devices_here() if name != "cpu"] if visible else []
    with gr.Row(visible=visible):
        return {
            "device": gr.Dropdown(
                [("cpu", ""), *here],
                value="",
                label="Device",
                info="Of ONNX models: gpu, npu or a provider. Of PyTorch: cuda, mps",
                allow_custom_value=True,
                elem_id="evaluate-device",
            ),
            "provider_options": gr.Textbox(
                label="Provider options",
                info="KEY=VALUE for the device, one per line",
                max_lines=4,
            ),
        }


def device_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a `ModelChoice` from the values of `device_controls`."""
    lines = (values["provider_options"] or "").splitlines()
    return {
        "device": (values["device"] or "").strip() or None,
        "provider_options": tuple(line.strip() for line in lines if line.strip()),
    }


def engine_controls() -> Controls:
    """Where to measure; the options of Ray are hidden until it is chosen."""
    controls: Controls = {
        "engine": gr.Radio(
            [("This process", LOCAL), *((name.title(), name) for name in installed_engines())],
            value=LOCAL,
            label="Engine",
            info="Ray runs several processes, on one machine or many. The numbers are the same.",
            elem_id="evaluate-engine",
        )
    }
    control = functools.partial(option_control, EngineChoice)
    with gr.Column(visible=False) as of_ray:
        controls["address"] = control(
            "address", info="Of a cluster. Blank: this machine", placeholder="127.0.0.1:6379"
        )
        with gr.Row():
            controls["workers"] = control("workers", info="0 for all cores", min_width=120)
            controls["threads_per_worker"] = control(
                "threads_per_worker", info="0 for one", min_width=120
            )
    controls["engine"].change(
        lambda engine: gr.update(visible=engine != LOCAL), controls["engine"], of_ray, **QUIET
    )
    return controls
