package localpg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweep removes the servers of runs that were killed. It is a favour to the
// machine and reports nothing: what it can't remove is not in our way.
func sweep() {
	for _, base := range append(tempDirs(), memoryDir) {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), dirPrefix) {
				sweepDir(filepath.Join(base, e.Name()))
			}
		}
	}
}

// sweepDir removes a server directory if its owner is gone, which is when its
// lock is free.
func sweepDir(path string) {
	lock, err := openLock(filepath.Join(path, "lock"), false)
	if os.IsNotExist(err) {
		_ = os.Remove(path) // works if it is empty: its owner died at once, or will try again
		return
	}
	if err != nil {
		return
	}
	d := &serverDir{path: path, lock: lock}
	info, err := lock.Stat()
	dir, dirErr := os.Lstat(path)
	if err != nil || dirErr != nil || ownerOf(info).uid != os.Geteuid() {
		lock.Close() // root can open other people's locks, too
		return
	}
	var as *account
	if os.Geteuid() == 0 {
		owner := ownerOf(dir)
		as = &owner
	}
	endPostmaster(d.data())
	removeSharedMemory(d.data(), as)
	_ = d.remove()
}

// endPostmaster ends the server of a data directory that is not our child.
func endPostmaster(data string) {
	pid, _ := strconv.Atoi(pidFile(data, 1))
	if pid <= 0 || !runs(pid, data) {
		return
	}
	_ = kill(pid, syscall.SIGQUIT)
	if !poll(5*time.Second, func() bool { return !runs(pid, data) }) {
		_ = crash(pid)
	}
}

// runs says whether a process is the server of that data directory.
func runs(pid int, data string) bool {
	list, _ := processes()
	for _, p := range list {
		if p.pid == pid && strings.Contains(p.command, "postgres") && strings.Contains(p.command, data) {
			return true
		}
	}
	return false
}

// removeSharedMemory gives back the System V segment by which a postmaster
// guards its data directory. A killed one leaves it behind, a restart takes it
// over, and without a restart it would stay until the machine reboots. The
// number stands in a file of the server's user, so that user removes it.
func removeSharedMemory(data string, as *account) {
	fields := strings.Fields(pidFile(data, 7)) // key, id
	if len(fields) != 2 {
		return
	}
	cmd := exec.Command("ipcrm", "-m", fields[1])
	cmd.Dir = "/"
	cmd.SysProcAttr = attrs(as)
	if p, err := startProcess(cmd); err == nil {
		<-p.done
	}
}

// pidFile returns a line of postmaster.pid, counted from 1.
func pidFile(data string, line int) string {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	lines := strings.Split(string(content), "\n")
	if err != nil || len(lines) < line {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}
