//! A machine of a few pages whose only program is a kernel's way back to user
//! code (`iretq`) and its wide atomic (`cmpxchg16b`).
//!
//! Sources: Intel SDM volume 3, 4.5 (paging) and 5.8.5 (`IRET`); AMD APM volume 2.

use std::io;

use kvm_bindings::{kvm_segment, kvm_userspace_memory_region};
use kvm_ioctls::{VcpuExit, VcpuFd, VmFd};

use super::Kvm;

// Where things lie in guest memory.
const PML4: u64 = 0x1000;
const PDPT: u64 = 0x2000;
const PD: u64 = 0x3000;
const GDT: u64 = 0x4000;
const TSS: u64 = 0x5000;
const CODE: u64 = 0x8000;
const AFTER_IRETQ: u64 = CODE + 0x20;
const AFTER_CMPXCHG16B: u64 = AFTER_IRETQ + 9;
const STACK: u64 = 0xF000;
const SIZE: usize = 0x1_0000;

const CODE_SELECTOR: u16 = 8;
const DATA_SELECTOR: u16 = 16;
const TSS_SELECTOR: u16 = 24;

const ENTER: &[u8] = &[
    0x6A, 0x10, // push 16: ss
    0x68, 0x00, 0xF0, 0x00, 0x00, // push 0xF000: rsp
    0x6A, 0x02, // push 2: rflags
    0x6A, 0x08, // push 8: cs
    0x68, 0x20, 0x80, 0x00, 0x00, // push AFTER_IRETQ: rip
    0x48, 0xCF, // iretq
    0xF4, // hlt
];

const CONTINUE: &[u8] = &[
    0x48, 0x0F, 0xC7, 0x0C, 0x25, 0x00, 0x60, 0x00, 0x00, // cmpxchg16b [0x6000]
    0xF4, // hlt
];

/// Memory of a machine: anonymous pages that live as long as this.
struct Memory {
    start: *mut u8,
}

impl Memory {
    fn new() -> io::Result<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice
        // touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast() })
    }

    /// Writes bytes at a guest address; no machine runs on this memory yet.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
        if at.checked_add(bytes.len()).is_none_or(|end| end > SIZE) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: `at` is below `SIZE`, so this stays within the mapping.
        let to = unsafe { self.start.add(at) };
        // SAFETY: the mapping has `bytes.len()` bytes from `to` on, `self` owns
        // it, and nothing else refers to it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn write_u64(&self, at: u64, value: u64) -> io::Result<()> {
        self.write(at, &value.to_le_bytes())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and the machine that used it is
        // dropped before it (see `run`).
        unsafe { libc::munmap(self.start.cast(), SIZE) };
    }
}

/// Makes the machine and runs it.
pub(super) fn run() -> io::Result<Kvm> {
    let kvm = kvm_ioctls::Kvm::new()?;
    let api = kvm.get_api_version();
    // Dropped last, after the machine.
    let memory = Memory::new()?;
    fill(&memory)?;
    let vm = kvm.create_vm()?;
    give(&vm, &memory)?;
    let mut vcpu = vm.create_vcpu(0)?;
    enter_long_mode(&vcpu)?;
    let end = match vcpu.run() {
        Ok(VcpuExit::Hlt) => "stopped",
        Ok(VcpuExit::InternalError) => "was refused",
        Ok(VcpuExit::Shutdown) => "faulted",
        Ok(_) => "left the guest",
        Err(error) => return Err(error.into()),
    };
    let rip = vcpu.get_regs()?.rip;
    Ok(if end == "stopped" && rip == AFTER_CMPXCHG16B + 1 {
        Kvm::Kernels { api }
    } else {
        let instruction = if rip < AFTER_IRETQ { "iretq" } else { "cmpxchg16b" };
        Kvm::UserCodeOnly { api, missing: format!("{instruction} {end}") }
    })
}

fn fill(memory: &Memory) -> io::Result<()> {
    // Present and writable; the last level maps 2 MiB at once.
    memory.write_u64(PML4, PDPT | 3)?;
    memory.write_u64(PDPT, PD | 3)?;
    memory.write_u64(PD, 0x83)?;
    memory.write_u64(GDT + u64::from(CODE_SELECTOR), 0x00AF_9B00_0000_FFFF)?;
    memory.write_u64(GDT + u64::from(DATA_SELECTOR), 0x00CF_9300_0000_FFFF)?;
    memory.write(CODE, ENTER)?;
    memory.write(AFTER_IRETQ, CONTINUE)
}

fn give(vm: &VmFd, memory: &Memory) -> io::Result<()> {
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: SIZE as u64,
        userspace_addr: memory.start.addr() as u64,
    };
    // SAFETY: the region is the whole of `memory`, which outlives the machine,
    // and no reference into it exists.
    unsafe { vm.set_user_memory_region(region) }?;
    Ok(())
}

fn enter_long_mode(vcpu: &VcpuFd) -> io::Result<()> {
    let mut sregs = vcpu.get_sregs()?;
    let segment = |selector, kind, long| kvm_segment {
        selector,
        limit: u32::MAX,
        type_: kind,
        present: 1,
        s: 1,
        l: long,
        db: 1 - long,
        g: 1,
        ..kvm_segment::default()
    };
    sregs.cs = segment(CODE_SELECTOR, 11, 1);
    let data = segment(DATA_SELECTOR, 3, 0);
    (sregs.ds, sregs.es, sregs.fs, sregs.gs, sregs.ss) = (data, data, data, data, data);
    sregs.tr = kvm_segment {
        base: TSS,
        limit: 0x67,
        selector: TSS_SELECTOR,
        type_: 11,
        present: 1,
        ..kvm_segment::default()
    };
    sregs.gdt.base = GDT;
    sregs.gdt.limit = 23;
    sregs.cr3 = PML4;
    // PAE; protection and paging; long mode enabled and active.
    sregs.cr4 = 1 << 5;
    sregs.cr0 = 1 | 1 << 31 | 1 << 4;
    sregs.efer = 1 << 8 | 1 << 10;
    vcpu.set_sregs(&sregs)?;
    let mut regs = vcpu.get_regs()?;
    regs.rip = CODE;
    regs.rsp = STACK;
    regs.rflags = 2;
    vcpu.set_regs(&regs)?;
    Ok(())
}
