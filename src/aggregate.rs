//! Digests, quantiles, intervals, bounds, coverage: pure.
