//! Detection of containers and of their network gateway.

use rustix::process::{Pid, getpid, getppid};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// Files that container engines create in every container.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Returns whether this process is the main process of a container, rather than a command in a development container:
/// the first process, or a child of the engine's init process (`docker run --init`).
pub(crate) fn is_main_process() -> bool {
    const INITS: [&str; 4] = ["tini", "docker-init", "dumb-init", "catatonit"];
    let below_init = || {
        let first = fs::read_to_string("/proc/1/comm").unwrap_or_default();
        getppid().is_some_and(Pid::is_init) && INITS.contains(&first.trim())
    };
    is_container() && (getpid().is_init() || below_init())
}

fn is_container() -> bool {
    MARKS.iter().any(|mark| Path::new(mark).exists())
}

/// Returns the source address of connections to published ports: the engine's end of the container network. Returns
/// `None` outside containers and without such a network.
pub(crate) fn gateway() -> Option<Ipv4Addr> {
    is_container().then_some(())?;
    default_gateway(&fs::read_to_string("/proc/net/route").ok()?)
}

/// Returns the gateway of the default route from the text of `/proc/net/route`: hexadecimal addresses in native byte
/// order.
fn default_gateway(table: &str) -> Option<Ipv4Addr> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (destination, gateway) = (columns.next()?, u32::from_str_radix(columns.next()?, 16).ok()?);
        (destination == "00000000" && gateway != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_is_read_from_default_route() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n";
        let row = |destination: &str, gateway: Ipv4Addr| {
            format!("eth0\t{destination}\t{:08X}\t0003\t0\t0\t0\t00000000\n", u32::from_ne_bytes(gateway.octets()))
        };
        let (own, gateway) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(10, 89, 0, 1));
        assert_eq!(default_gateway(&[head, &row("0000590A", own), &row("00000000", gateway)].concat()), Some(gateway));
        assert_eq!(default_gateway(&[head, &row("0000590A", own)].concat()), None);
        assert_eq!(default_gateway(&[head, "eth0\tx\n", "\n"].concat()), None);
    }
}
