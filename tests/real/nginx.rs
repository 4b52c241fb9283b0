//! nginx as a reverse proxy in front of a server of streams.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::scratch::Scratch;

pub struct Nginx {
    /// Where requests go: `/buffered/` and `/direct/` lead to the same server.
    pub address: SocketAddr,
    _process: Process,
}

impl Nginx {
    /// Passes requests on to `upstream`: under `/buffered/` with nginx's defaults, under `/direct/` as streams need it. The
    /// defaults speak HTTP/1.0 to the server; chunks of HTTP/1.1 nginx lets through even where it buffers.
    pub fn start(scratch: &Scratch, upstream: SocketAddr) -> Self {
        let address = free_address();
        let config = scratch.join("nginx.conf");
        fs::write(&config, configuration(scratch.path(), address, upstream)).expect("written");
        let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
        let mut command = Command::new(program);
        command.arg("-p").arg(scratch.path()).arg("-c").arg(&config).args(["-e", "stderr"]);
        let process = Process::spawn(scratch, "nginx", &mut command);
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "nginx was not ready; its log:\n{}", process.log_tail());
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { address, _process: process }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// One that nobody listens on. nginx cannot say which port it was given.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}

fn configuration(folder: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 64; }}
http {{
{temporary}
    access_log off;
    server {{
        listen {address};
        location /buffered/ {{ proxy_pass http://{upstream}/; }}
        location /direct/ {{
            proxy_pass http://{upstream}/;
            proxy_http_version 1.1;
            proxy_set_header Connection '';
            proxy_buffering off;
        }}
    }}
}}
"
    )
}
