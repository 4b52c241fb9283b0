//! REST: router, errors, one file a resource, OpenAPI.
