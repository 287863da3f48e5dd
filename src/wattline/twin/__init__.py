"""World made of physics and a virtual clock: replay, scenarios, plans, forecasts, fits."""
