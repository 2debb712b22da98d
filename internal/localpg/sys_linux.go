package localpg

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attrs makes a process end when ours does: SIGQUIT is an immediate shutdown
// to a postmaster, which takes its children along. Its own process group keeps
// a terminal's Ctrl-C from stopping the server under a test's cleanup.
func attrs(as *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return a
}

// processes lists what runs on this machine, without zombies. It reads /proc
// because small containers have no ps.
func processes() ([]procInfo, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var list []procInfo
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid ...; the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		ppid, _ := strconv.Atoi(fields[1])
		cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		list = append(list, procInfo{
			pid: pid, ppid: ppid, stopped: fields[0] == "T",
			command: strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " ")),
		})
	}
	return list, nil
}

// hasMemory says whether dir is a file system in memory with so many bytes free.
func hasMemory(dir string, bytes uint64) bool {
	const tmpfs = 0x01021994 // TMPFS_MAGIC in linux/magic.h
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	return err == nil && fs.Type == tmpfs && fs.Bavail*uint64(fs.Bsize) >= bytes
}
