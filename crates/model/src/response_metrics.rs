//! What an answer tells of its own timing (design, section 5).

use super::time::Nanos;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// In which form an answer told its timing. The number is stored: never reuse one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(u8)]
        pub enum MetricsKind {
            $($(#[$doc])* $variant = $number,)*
        }

        impl MetricsKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in records, answers and the docs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// vLLM's `metrics` object in the body.
    #[default]
    Vllm = 0, "vllm";
    /// vLLM's `x-vllm-*` headers.
    VllmHeaders = 1, "vllm_headers";
    /// TGI's headers.
    TgiHeaders = 2, "tgi_headers";
    /// Ollama's last object.
    Ollama = 3, "ollama";
    /// llama.cpp's `timings`.
    LlamaCpp = 4, "llama_cpp";
    /// The `Server-Timing` header.
    ServerTiming = 5, "server_timing";
    /// LiteLLM's headers.
    LitellmHeaders = 6, "litellm_headers";
}

impl MetricsKind {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// From the stored number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u32 == number)
    }
}

/// The answer's own timing, measured by the server that made it. `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseMetrics {
    /// In which form it was told.
    pub kind: MetricsKind,
    /// The engine's whole time for the request.
    pub total: Option<Nanos>,
    /// Work of a gateway in front of the engine.
    pub gateway: Option<Nanos>,
    /// Waiting for a slot.
    pub queue: Option<Nanos>,
    /// Slot to the first token.
    pub prefill: Option<Nanos>,
    /// First token to the last.
    pub decode: Option<Nanos>,
    /// Slot to the last token, where the two parts of it are not both told.
    pub inference: Option<Nanos>,
}

impl ResponseMetrics {
    /// Slot to the last token.
    pub fn generation(&self) -> Option<Nanos> {
        let parts = self.prefill.zip(self.decode).map(|(prefill, decode)| prefill + decode);
        parts.or(self.inference)
    }

    /// Whether it tells the time of no phase.
    pub fn is_empty(&self) -> bool {
        let told = [self.gateway, self.queue, self.prefill, self.decode, self.inference];
        told.iter().all(Option::is_none)
    }
}
