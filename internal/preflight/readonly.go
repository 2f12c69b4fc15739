package preflight

import (
	"errors"
	"io"

	"bellwether/internal/store"
)

// errReadOnly is the error of every call that would change a file.
var errReadOnly = errors.New("preflight changes nothing")

// readOnly is a file system that refuses every change.
type readOnly struct{ store.FS }

func (readOnly) MkdirAll(string) error             { return errReadOnly }
func (readOnly) Create(string) (store.File, error) { return nil, errReadOnly }
func (readOnly) Append(string) (store.File, error) { return nil, errReadOnly }
func (readOnly) Rename(string, string) error       { return errReadOnly }
func (readOnly) Remove(string) error               { return errReadOnly }
func (readOnly) SyncDir(string) error              { return errReadOnly }
func (readOnly) Lock(string) (io.Closer, error)    { return nil, errReadOnly }
