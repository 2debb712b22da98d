//go:build unix && !linux

package localpg

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attrs sets who a process runs as. There is no way here to have it end with
// us; what a killed run leaves is swept by the next one.
func attrs(as *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return a
}

// processes lists what runs on this machine, without zombies.
func processes() ([]procInfo, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,ppid=,state=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes with ps: %w", err)
	}
	var list []procInfo
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2][0] == 'Z' {
			continue
		}
		pid, err1 := strconv.Atoi(fields[0])
		ppid, err2 := strconv.Atoi(fields[1])
		if err1 != nil || err2 != nil {
			continue
		}
		list = append(list, procInfo{
			pid: pid, ppid: ppid, stopped: fields[2][0] == 'T',
			command: strings.Join(fields[3:], " "),
		})
	}
	return list, nil
}

// hasMemory says no: file systems in memory have no usual place here.
func hasMemory(string, uint64) bool { return false }
