"""What this feature adds."""

from fillmask_ui.extensions import EngineRow, Feature

FEATURE = Feature(
    name="ray",
    package=__package__,
    engines={"ray": EngineRow("fillmask_ui.features.ray.engine:open_ray", package="ray")},
)
