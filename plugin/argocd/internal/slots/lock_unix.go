//go:build linux || darwin || freebsd || netbsd || openbsd

package slots

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// exclusive locks f, or says that somebody else has.
func exclusive(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errTaken
		default:
			return fmt.Errorf("locking a slot: %w", err)
		}
	}
}

// private checks that dir is a folder that nobody but this user can use:
// elsewhere somebody could hold every slot, or read along.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return plain(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return errors.New("want one that belongs to this user, with mode 0700")
	}
	return nil
}
