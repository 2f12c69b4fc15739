package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// MemberFiles are the files beside the static configuration file in which a server keeps
// the membership of its ensemble. Each file is replaced as a whole, through a file with
// .tmp appended to its name. If the static file is a symbolic link, the file that it leads
// to is replaced, and the link stays. The names and the texts come from the caller.
type MemberFiles struct {
	FS     FS
	Static string // path of the static configuration file
	Next   string // path of the file of a proposed membership
}

// configMax limits how much of a configuration file is read, in bytes.
const configMax = 4 << 20

// Backup copies the static file to a file with .bak appended to its name.
func (f *MemberFiles) Backup() error {
	text, err := f.Read(f.Static)
	if err == nil {
		err = f.writeStatic(f.Static+".bak", text)
	}
	if err != nil {
		return fmt.Errorf("copy of the configuration file: %w", err)
	}
	return nil
}

// writeStatic replaces the static file or its copy. It keeps the permissions of the static
// file, which may hold passwords.
func (f *MemberFiles) writeStatic(path, text string) (err error) {
	temp := path + ".tmp"
	defer f.removeAfter(&err, temp)
	empty, err := f.FS.Create(temp)
	if err != nil {
		return err
	}
	if err := errors.Join(empty.Close(), f.FS.CopyMode(f.Static, temp)); err != nil {
		return err
	}
	return writeAtomic(f.FS, path, text)
}

// write replaces a file.
func (f *MemberFiles) write(path, text string) (err error) {
	defer f.removeAfter(&err, path+".tmp")
	return writeAtomic(f.FS, path, text)
}

// removeAfter removes a temporary file after an error, because nothing else would. Whether
// the removal fails too does not matter: the error says what is wrong with the directory.
func (f *MemberFiles) removeAfter(err *error, temp string) {
	if *err != nil {
		f.FS.Remove(temp)
	}
}

// SaveProposed makes a proposed membership durable.
func (f *MemberFiles) SaveProposed(text string) error { return f.write(f.Next, text) }

// SaveCommitted makes a committed membership durable: first the dynamic file path, then
// the static file with the text that edit makes of its present one, so that it never names
// a file that does not exist. Then it removes the file of a proposed membership, unless
// another membership is proposed. Everything may be repeated after a crash.
func (f *MemberFiles) SaveCommitted(path, text string, edit func(static string) (string, error), proposed bool) error {
	if err := f.write(path, text); err != nil {
		return err
	}
	static, err := f.Read(f.Static)
	if err != nil {
		return err
	}
	if static, err = edit(static); err != nil {
		return err
	}
	target, err := f.FS.Resolve(f.Static)
	if err != nil {
		return err
	}
	if err := f.writeStatic(target, static); err != nil || proposed {
		return err
	}
	err = f.FS.Remove(f.Next)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, f.FS.SyncDir(filepath.Dir(f.Next)))
}

// Read returns the content of a file.
func (f *MemberFiles) Read(path string) (text string, err error) {
	file, err := f.FS.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err := io.ReadAll(io.NewSectionReader(file, 0, configMax+1))
	if err == nil && len(b) > configMax {
		err = fmt.Errorf("%s is longer than %d bytes", path, configMax)
	}
	return string(b), err
}
