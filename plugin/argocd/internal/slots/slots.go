// Package slots bounds how many processes of this user work at a time, which
// Argo CD does not: it starts a plugin for every application that it renders.
//
// A slot is a lock on a file, so the kernel frees it when its holder is killed,
// and a folder that only its holder uses. What a killed holder left there is
// removed before the next one gets it.
package slots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Most is the largest number of slots that Take knows.
const Most = 256

// pause is how long Take waits on average before it looks again. A render takes
// some tenths of a second.
const pause = 25 * time.Millisecond

// errTaken is a slot that somebody else holds.
var errTaken = errors.New("taken")

// Slot is one holder's place. The zero value holds nothing.
type Slot struct {
	// Dir is an empty folder that nobody else may read.
	Dir string

	lock *os.File
}

// Take waits for one of n slots in dir, which it makes and which must belong to
// this user alone. When ctx ends first it returns ctx's error; it looks once even
// if ctx has ended. Whoever waits is
// served by chance, not in turn: with n slots that are held for a moment each,
// nobody waits much longer than others.
func Take(ctx context.Context, dir string, n int) (Slot, error) {
	if n < 1 || n > Most {
		return Slot{}, fmt.Errorf("%d slots: want 1 to %d", n, Most)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Slot{}, fmt.Errorf("making the folder of slots: %w", plain(err))
	}
	if err := private(dir); err != nil {
		return Slot{}, fmt.Errorf("the folder of slots: %w", err)
	}
	for {
		for i := range n {
			s, err := take(filepath.Join(dir, fmt.Sprint(i)))
			if !errors.Is(err, errTaken) {
				return s, err
			}
		}
		select {
		case <-ctx.Done():
			return Slot{}, ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

func take(path string) (Slot, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Slot{}, fmt.Errorf("opening a slot: %w", plain(err))
	}
	s := Slot{Dir: path, lock: f}
	err = exclusive(f)
	if err == nil {
		err = s.empty()
	}
	if err != nil {
		_ = f.Close() // frees what was locked
		return Slot{}, err
	}
	return s, nil
}

func (s Slot) empty() error {
	err := os.RemoveAll(s.Dir)
	if err == nil {
		err = os.Mkdir(s.Dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("emptying the folder of a slot: %w", plain(err))
	}
	return nil
}

// Free removes what is in the folder and lets the next one have the slot.
func (s Slot) Free() {
	if s.lock == nil {
		return
	}
	_ = os.RemoveAll(s.Dir) // the next holder tries again, and says so
	_ = s.lock.Close()
}

// plain drops the path of this machine, which would change from run to run.
func plain(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
