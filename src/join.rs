//! Entry span, painting, matching and checks, all pure; and the worker that settles traces.
