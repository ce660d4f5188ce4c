package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memorySample is how often the memory of processes is looked at. A render takes
// some tenths of a second.
const memorySample = 20 * time.Millisecond

// Memory is what a process and all that it has started take together, at its
// highest.
type Memory struct {
	// Own is what no file backs: what a container's limit ends processes for. In
	// bytes.
	Own int64
	// Mapped is Own and the parts of programs that are in memory, each program
	// once.
	Mapped int64
	// Processes is how many there were at most.
	Processes int
	// CPU is how long they have worked meanwhile: those that are there still, and
	// those that have ended.
	CPU time.Duration
}

// WatchMemory looks at the memory of a process and its descendants until the
// function that it returns is called, which says what was the most.
func (e *Env) WatchMemory(pid int) func() Memory {
	e.T.Helper()
	stop, result := make(chan struct{}), make(chan Memory, 1)
	before := worked(pid)
	go func() {
		ticker := time.NewTicker(memorySample)
		defer ticker.Stop()
		var most Memory
		for {
			now := memory(pid)
			most = Memory{Own: max(most.Own, now.Own), Mapped: max(most.Mapped, now.Mapped), Processes: max(most.Processes, now.Processes)}
			select {
			case <-ticker.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() Memory {
		close(stop)
		most := <-result
		most.CPU = worked(pid) - before
		return most
	}
}

// memory is that of the processes that are there now. One that ends meanwhile
// counts for nothing.
func memory(pid int) Memory {
	var m Memory
	mapped := map[string]int64{}
	for todo := []int{pid}; len(todo) > 0; {
		p := strconv.Itoa(todo[0])
		todo = append(todo[1:], children(p)...)
		status, err := os.ReadFile(filepath.Join("/proc", p, "status"))
		if err != nil {
			continue
		}
		program, _ := os.Readlink(filepath.Join("/proc", p, "exe"))
		own, file := kilobytes(status, "RssAnon:")+kilobytes(status, "RssShmem:"), kilobytes(status, "RssFile:")
		m.Own += own << 10
		mapped[program] = max(mapped[program], file<<10)
		m.Processes++
	}
	m.Mapped = m.Own
	for _, n := range mapped {
		m.Mapped += n
	}
	return m
}

// children are the processes that the threads of a process have started.
func children(pid string) []int {
	lists, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "children"))
	var all []int
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, s := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(s); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

func kilobytes(status []byte, field string) int64 {
	for s := bufio.NewScanner(bytes.NewReader(status)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n
		}
	}
	return 0
}

// clockTick is the unit of times in /proc: USER_HZ, 100 on every Linux that Go
// runs on.
const clockTick = 10 * time.Millisecond

// worked is the time that a process and those of its descendants that it has
// waited for have worked.
func worked(pid int) time.Duration {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The second field, the name, may hold spaces.
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		if i < len(fields) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}

func (m Memory) String() string {
	return fmt.Sprintf("%d MiB (%d with programs) in %d processes, %.1f s of a processor", m.Own>>20, m.Mapped>>20, m.Processes, m.CPU.Seconds())
}
