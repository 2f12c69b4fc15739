package server

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/store"
)

// changesMembers reports whether the membership can change while the server runs.
func (s *Server) changesMembers() bool { return s.member != nil && s.config().Tree.Reconfig }

// openMemberFiles finds the files of the membership. Without a configuration file, as in an
// embedded server, nothing is written. Before the first change of a static file that holds
// the server lines, the file is copied.
func (m *member) openMemberFiles() error {
	c := m.srv.config()
	if c.File == "" || !c.Tree.Reconfig {
		return nil
	}
	static, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	m.files = &store.MemberFiles{FS: m.srv.opt.FS, Static: static, Next: ensemble.NextFileName(static)}
	if c.Ensemble.DynamicFile != "" {
		return nil
	}
	if err := m.files.Backup(); err != nil {
		return fmt.Errorf("%w: make the directory of %s writable, or set reconfigEnabled=false", err, static)
	}
	return nil
}

// saveMembers writes the files of a membership. A failure has no effect but that the files
// stay older: the log holds the membership too.
func (w *logWriter) saveMembers(a *driver.Action) {
	f := w.srv.member.files
	if f == nil {
		return
	}
	var err error
	if a.Kind == driver.SaveProposed {
		err = f.SaveProposed(a.Proposed.FileText(true))
	} else {
		err = w.srv.saveCommitted(f, a.Committed)
	}
	if err != nil {
		w.srv.log.Error("the configuration files could not be written; the membership is kept in the log: make their directory writable before the next start",
			"file", f.Static, "err", err)
	}
}

func (s *Server) saveCommitted(f *store.MemberFiles, now *replica.Memberships) error {
	m := now.Committed
	self, _ := m.Server(s.config().Ensemble.ID)
	path := m.FileName(f.Static)
	edit := func(static string) (string, error) { return ensemble.StaticText(static, path, !self.Client.IsZero()) }
	return f.SaveCommitted(path, m.FileText(false), edit, now.Proposed != nil)
}

// reconfigured makes the connections to other servers, the configuration and the client
// port follow the memberships that count now. It runs in the loop.
func (m *member) reconfigured(now *replica.Memberships) {
	m.mesh.SetMembership(now.Committed, now.Proposed)
	m.links.SetMembership(now.Committed, now.Proposed)
	if m.srv.setMembers(now.Committed) {
		m.srv.log.Info("Membership changed", "version", fmt.Sprintf("%x", now.Committed.Version()), "voters", fmt.Sprint(now.Committed.Voters()))
	}
}

// setMembers puts the committed membership into the configuration. It reports whether it is
// another one than before.
func (s *Server) setMembers(m *ensemble.Membership) bool {
	s.cfgMu.Lock()
	before := s.config()
	file := ""
	if f := s.member.files; f != nil && m.Version() != before.Ensemble.Members.Version() {
		file = m.FileName(f.Static)
	}
	now := before.WithMembers(m, file)
	s.cfg.Store(now)
	s.cfgMu.Unlock()
	if now.Client != before.Client {
		s.moveClientPort(now.Client)
	}
	return m.Version() != before.Ensemble.Members.Version()
}

// moveClientPort opens the client port at another address, on a goroutine of its own,
// because resolving a name may take long. Connections stay.
func (s *Server) moveClientPort(to ensemble.HostPort) {
	if s.opt.Hooks.Clients != nil {
		return
	}
	s.writers.Go(func() {
		s.clientMu.Lock()
		defer s.clientMu.Unlock()
		if s.stopping.Load() || s.config().Client != to {
			return
		}
		if err := s.replaceClientPort(to); err != nil {
			s.log.Error("the client port stays at its former address", "err", err)
			return
		}
		s.log.Info("client port moved", "address", s.client.Addr())
	})
}

// replaceClientPort opens the client port at another address and closes it at the former one.
// If both addresses have the same port, they may exclude each other, as 127.0.0.1 and
// 0.0.0.0 do. Then the former one is closed first, and opened again if the other fails.
func (s *Server) replaceClientPort(to ensemble.HostPort) error {
	err := s.openClientPort(to)
	if err == nil || s.client == nil {
		return err
	}
	former, ok := s.client.Addr().(*net.TCPAddr)
	if !ok || former.Port != to.Port {
		return err
	}
	s.client.Close()
	if err = s.openClientPort(to); err != nil {
		return errors.Join(err, s.openClientPort(ensemble.HostPort{Host: former.IP.String(), Port: former.Port}))
	}
	return nil
}

// openClientPort opens the client port in place of the former one, and accepts clients there.
func (s *Server) openClientPort(at ensemble.HostPort) error {
	ln, err := listen(at, s.config().Limits.KeepAlive, "client port in the server line")
	if err != nil {
		return err
	}
	if s.client != nil {
		s.client.Close()
	}
	s.client = ln
	s.readers.Go(func() { s.accept(ln, s.config().TLS.ClientUnified, true) })
	return nil
}

// clientPort returns the listener of the client port; nil: there is none.
func (s *Server) clientPort() net.Listener {
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	return s.client
}
