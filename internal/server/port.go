package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"bellwether/internal/store"
	"bellwether/wire"
)

// SnapshotInfo describes a snapshot on disk.
type SnapshotInfo struct {
	store.SnapshotFile
	At time.Time // when it was written; of a snapshot that the start found, when its file changed
}

// LastSnapshot returns the newest snapshot that was loaded or written; false: there is none.
func (s *Server) LastSnapshot() (SnapshotInfo, bool) {
	if last := s.lastSnapshot.Load(); last != nil {
		return *last, true
	}
	return SnapshotInfo{}, false
}

// noteSnapshot records a snapshot that was written.
func (s *Server) noteSnapshot(file store.SnapshotFile) {
	s.lastSnapshot.Store(&SnapshotInfo{file, s.skewed(time.Now())})
}

// noteLoaded records the snapshot that the start has read.
func (s *Server) noteLoaded(zxid wire.Zxid, path string) {
	if zxid < 0 {
		return
	}
	last := &SnapshotInfo{store.SnapshotFile{Path: path, Zxid: zxid}, s.start}
	if info, err := os.Stat(path); err == nil { // it fails if the file system is in memory
		last.At, last.Size = info.ModTime(), info.Size()
	}
	s.lastSnapshot.Store(last)
}

// snapshotRequest asks the snapshotter for a snapshot now.
type snapshotRequest struct{ answer chan<- snapshotAnswer }

type snapshotAnswer struct {
	file store.SnapshotFile
	err  error
}

// TakeSnapshot writes a snapshot now. It waits for a snapshot or purge that is under way,
// and for the disk.
func (s *Server) TakeSnapshot(ctx context.Context) (store.SnapshotFile, error) {
	answer := make(chan snapshotAnswer, 1)
	select {
	case s.wanted <- snapshotRequest{answer}:
	case <-ctx.Done():
		return store.SnapshotFile{}, fmt.Errorf("the snapshot was not begun: %w", ctx.Err())
	case <-s.stop:
		return store.SnapshotFile{}, ErrNotServing
	}
	select {
	case a := <-answer:
		return a.file, a.err
	case <-ctx.Done():
		return store.SnapshotFile{}, fmt.Errorf("the snapshot is still being written: %w", ctx.Err())
	case <-s.stop:
		return store.SnapshotFile{}, ErrNotServing
	}
}

// OpenSnapshot opens a snapshot that TakeSnapshot has written. A purge may remove its name
// while it is read, but not its content.
func (s *Server) OpenSnapshot(file store.SnapshotFile) (io.ReadCloser, error) {
	f, err := s.opt.FS.Open(file.Path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, file.Size), f}, nil
}

// Loaded reports whether the data has been loaded. Before that nothing may use the tree.
func (s *Server) Loaded() bool { return s.loaded.Load() }

// Restoring reports whether a command restore is in process, which stops the loop for a while.
func (s *Server) Restoring() bool { return s.restoring.Load() }

// Stopping reports whether the server is ending.
func (s *Server) Stopping() bool {
	select {
	case <-s.dead:
		return true
	default:
		return s.stopping.Load()
	}
}

// Answers reports whether the loop answers before ctx ends. It also returns true if the loop
// does not run yet, or has ended.
func (s *Server) Answers(ctx context.Context) bool {
	if !s.serving.Load() {
		return true
	}
	answered := make(chan struct{})
	s.inbox.ask(func(*loop) { close(answered) })
	select {
	case <-answered:
	case <-s.loopEnded:
	case <-ctx.Done():
		return false
	}
	return true
}

// DigestIDs returns the identities that a text of the form user:password proves.
func (s *Server) DigestIDs(text string) []wire.ID { return digestIDs(&s.config().Access, text) }

// errNoClientTLS: no client port uses TLS, so a certificate proves no identity.
var errNoClientTLS = errors.New("the scheme x509 needs secureClientPort or client.portUnification")

// CertificateIDs returns the identities that the certificate of a connection proves. The
// certificate must be valid for the client port too (ssl.*), because the ids in ACLs are those
// of clients there.
func (s *Server) CertificateIDs(ctx context.Context, state *tls.ConnectionState, addr netip.Addr) ([]wire.ID, error) {
	if s.certs.clients == nil {
		return nil, errNoClientTLS
	}
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, errors.New("the connection has shown no certificate")
	}
	if err := s.certs.clients.CheckClient(ctx, *state, addr); err != nil {
		return nil, err
	}
	id, _ := s.config().TLS.Clients.Identity.Of(state.PeerCertificates[0]) // with an error, id is the subject
	ids := []wire.ID{{Scheme: "x509", ID: id}}
	if super := s.config().Access.X509Super; super != "" && id == super {
		ids = append(ids, wire.ID{Scheme: "super"})
	}
	return ids, nil
}

// LoginFailed records that a login of an operator from an address has failed. Failed logins of
// clients count together with those of operators.
func (s *Server) LoginFailed(addr netip.Addr) { s.loginFailed(addr, 1) }

// LoginDelay returns how long the next login of an operator or client from an address must wait.
func (s *Server) LoginDelay(addr netip.Addr) time.Duration { return s.loginDelay(addr) }

// IsSuperUser reports whether a text of the form user:password names the super user, whether
// or not with the right password.
func (s *Server) IsSuperUser(text string) bool { return namesSuper(&s.config().Access, text) }
