package lock

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	// maxReceiptFile is one receipt and its comment.
	maxReceiptFile = receipt.MaxSize + maxComment + 16
	// maxPinsFile holds some thousand tags of one image.
	maxPinsFile = 1 << 20
	// maxFiles bounds a folder: one application has hundreds of objects, not
	// tens of thousands.
	maxFiles = 20000
)

// file is one file of the lock, by its path in the folder with '/'.
type file struct {
	path string
	data []byte
}

// lines returns the lines without their ends. A carriage return before the end
// is Git's, on systems that write them.
func (f file) lines() []string {
	text := strings.TrimSuffix(string(f.data), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// load tells the files apart by where they are.
func (l *Lock) load(f file) error {
	for i, line := range f.lines() {
		for _, marker := range []string{"<<<<<<< ", ">>>>>>> "} {
			if strings.HasPrefix(line, marker) {
				return fmt.Errorf("line %d: merge conflict", i+1)
			}
		}
	}
	folder, _ := path.Split(f.path)
	switch {
	case folder == imagesFolder+"/" && strings.HasSuffix(f.path, pinsEnding):
		return l.loadPins(f)
	case folder != "" && folder != imagesFolder+"/" && strings.HasSuffix(f.path, ending):
		return l.loadReceipt(f)
	}
	return errors.New("not a file of the lock")
}

// openFolder returns the folder, which nothing that is opened through it can
// leave, not by a symbolic link either.
func openFolder(dir string) (*os.Root, error) {
	app, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer app.Close()
	return app.OpenRoot(Folder)
}

// readFolder returns every file, sorted by path; none without the folder.
func readFolder(dir string) ([]file, error) {
	root, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) && exists(dir) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var files []file
	folders, err := list(root, ".")
	if err != nil {
		return nil, err
	}
	for _, name := range folders {
		if name == renderFile {
			continue
		}
		info, err := root.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: not a file of the lock", name)
		}
		names, err := list(root, name)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			f, err := readFile(root, name+"/"+n)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
			if len(files) > maxFiles {
				return nil, fmt.Errorf("more than %d files", maxFiles)
			}
		}
	}
	return files, nil
}

// exists reports whether dir itself is there: a mistyped directory is not an
// application without a lock. A .syncgate that is a dangling link is an error
// as well.
func exists(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	_, err = os.Lstat(path.Join(dir, Folder))
	return errors.Is(err, fs.ErrNotExist)
}

// list returns the names in a folder, sorted, without those that start with a
// dot: what editors, Git and an interrupted Save leave.
func list(root *os.Root, folder string) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func readFile(root *os.Root, name string) (file, error) {
	limit := maxReceiptFile
	if strings.HasSuffix(name, pinsEnding) {
		limit = maxPinsFile
	}
	info, err := root.Stat(name)
	if err != nil {
		return file{}, err
	}
	// Opening a pipe would wait for somebody to write.
	if !info.Mode().IsRegular() {
		return file{}, fmt.Errorf("%s: not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > limit {
		return file{}, fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return file{path: name, data: data}, nil
}

// writeFolder writes some files in order, then removes some, then the folders
// that became empty.
func writeFolder(dir string, write []string, texts map[string]string, remove []string) error {
	app, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer app.Close()
	err = app.Mkdir(Folder, 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := app.OpenRoot(Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	// All of them beside their places first, where a full disk shows: half of a
	// lock's receipts are no use to anybody.
	staged := make([]string, 0, len(write))
	for _, name := range write {
		temporary, err := stage(root, name, texts[name])
		if err != nil {
			for _, t := range staged {
				err = errors.Join(err, root.Remove(t))
			}
			return err
		}
		staged = append(staged, temporary)
	}
	for i, name := range write {
		err = root.Rename(staged[i], name)
		if err != nil {
			for _, t := range staged[i:] {
				err = errors.Join(err, root.Remove(t))
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range remove {
		err = root.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Fails, as it should, while there is anything in it.
		_ = root.Remove(path.Dir(name))
	}
	return nil
}

// stage writes a file under a temporary name beside its place, for renaming:
// readers, and a crash, see the old one or the new one.
func stage(root *os.Root, name, text string) (temporary string, err error) {
	if folder := path.Dir(name); folder != "." {
		err := root.Mkdir(folder, 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	temporary = path.Join(path.Dir(name), ".tmp-"+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", name, err), root.Remove(temporary))
	}
	return temporary, nil
}
