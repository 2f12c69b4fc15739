package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Store holds the certificates of one family of settings, and replaces them when their
// files change. Connections keep what they began with. It is safe for concurrent use.
type Store struct {
	settings   Settings
	revocation *revocation
	now        func() time.Time
	loaded     atomic.Pointer[loaded]

	mu      sync.Mutex // held while files are read
	read    [sha256.Size]byte
	failure string // failure of the last reload; empty if it succeeded
}

// loaded holds what the files contained when they were last read. It does not change.
type loaded struct {
	certificates []tls.Certificate // certificates that this end shows to others
	announced    *x509.CertPool    // authorities that clients are told about; nil: none
	verifier     *verifier
	all          []Certificate
}

// Certificate says how long a certificate in one of the files is valid.
type Certificate struct {
	File      string
	Subject   string
	Ours      bool // this end shows the certificate to others; otherwise it is a trusted certificate
	NotBefore time.Time
	NotAfter  time.Time
	cert      *x509.Certificate
}

// Open reads the files of the settings. A *FileError says why it cannot.
func Open(s Settings) (*Store, error) {
	return openAt(s, time.Now)
}

func openAt(s Settings, now func() time.Time) (*Store, error) {
	st := &Store{settings: s, now: now, revocation: newRevocation(now)}
	_, err := st.reload()
	if err != nil {
		return nil, err
	}
	return st, nil
}

// ReloadNow reads the files again. It reports whether their contents are now used for the first time, or are
// used again after a failure. If they are not usable, the old certificates stay in use, and the error
// says why. Revocation lists and answers of responders are loaded again when they are next needed.
func (s *Store) ReloadNow() (changed bool, err error) {
	s.revocation.forget()
	return s.reload()
}

func (s *Store) reload() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := s.settings.KeyStore.read()
	defer func() { key.wipe() }()
	if err != nil {
		return false, s.failed(err)
	}
	trust, err := s.settings.TrustStore.read()
	defer func() { trust.wipe() }()
	if err != nil {
		return false, s.failed(err)
	}
	sum := sumOf(key.store, key.password, trust.store, trust.password)
	if sum == s.read && s.failure == "" {
		return false, nil
	}
	l, err := s.load(key, trust)
	if err != nil {
		return false, s.failed(err)
	}
	s.read, s.failure = sum, ""
	s.loaded.Store(l)
	return true, nil
}

// failed keeps a failure and returns it.
func (s *Store) failed(err error) error {
	s.failure = err.Error()
	return err
}

// Reload reads the files again, as ReloadNow does, but does not return the same error twice in a row. It
// leaves revocation lists and answers alone, so that it can be called often.
func (s *Store) Reload() (changed bool, err error) {
	s.mu.Lock()
	before := s.failure
	s.mu.Unlock()
	changed, err = s.reload()
	if err != nil && err.Error() == before {
		return false, nil
	}
	return changed, err
}

// sumOf returns a checksum of several files.
func sumOf(files ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		one := sha256.Sum256(f)
		h.Write(one[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// load makes the loaded state from the contents of the files.
func (s *Store) load(key, trust storeBytes) (*loaded, error) {
	l := &loaded{verifier: &verifier{
		trust:      string(s.settings.Family) + "trustStore.location",
		settings:   s.settings,
		lookup:     net.DefaultResolver,
		revocation: s.revocation,
		now:        s.now,
	}}
	if f := s.settings.KeyStore; f.Location != "" {
		c, err := f.load(key, true)
		if err != nil {
			return nil, err
		}
		for _, k := range c.keys {
			shown := tls.Certificate{PrivateKey: k.key, Leaf: k.chain[0]}
			for _, cert := range k.chain {
				shown.Certificate = append(shown.Certificate, cert.Raw)
			}
			l.certificates = append(l.certificates, shown)
			l.note(f.Location, k.chain, true)
		}
		l.preferValid(s.now())
	}
	if f := s.settings.TrustStore; f.Location != "" {
		c, err := f.load(trust, false)
		if err != nil {
			return nil, err
		}
		l.verifier.roots = pool(c.trusted)
		l.announced = l.verifier.roots
		l.note(f.Location, c.trusted, false)
		return l, nil
	}
	// As in Java, without a trust store the authorities of the system are trusted.
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("%s is not set, and the system has no trusted certificates: %w", l.verifier.trust, err)
	}
	l.verifier.roots = roots
	return l, nil
}

// preferValid puts certificates that are valid now before others, as Java does.
func (l *loaded) preferValid(now time.Time) {
	slices.SortStableFunc(l.certificates, func(a, b tls.Certificate) int {
		rank := func(c tls.Certificate) int {
			if now.Before(c.Leaf.NotBefore) || now.After(c.Leaf.NotAfter) {
				return 1
			}
			return 0
		}
		return rank(a) - rank(b)
	})
}

// note adds certificates to the list of what was loaded.
func (l *loaded) note(file string, certs []*x509.Certificate, ours bool) {
	for _, c := range certs {
		l.all = append(l.all, Certificate{file, NameOf(c), ours, c.NotBefore, c.NotAfter, c})
	}
}

// Settings returns the settings of the store.
func (s *Store) Settings() Settings { return s.settings }

// Certificates returns all certificates that are in use.
func (s *Store) Certificates() []Certificate { return slices.Clone(s.loaded.Load().all) }

// warnings are the numbers of days before an expiry at which a warning is given.
var warnings = []int{1, 7, 30}

// Expiry returns 30, 7 or 1 if the certificate expires within that many days, or 0 if it has expired, and
// a line that says so. It returns -1 if no warning is due yet.
func (c Certificate) Expiry(now time.Time) (days int, text string) {
	left := c.NotAfter.Sub(now)
	what := "trusted certificate"
	if c.Ours {
		what = "certificate"
	}
	at := c.NotAfter.UTC().Format(time.RFC3339)
	if left <= 0 {
		return 0, fmt.Sprintf("the %s %q of %s expired at %s: renew it", what, c.Subject, c.File, at)
	}
	for _, days := range warnings {
		if left <= time.Duration(days)*24*time.Hour {
			return days, fmt.Sprintf("the %s %q of %s expires at %s, in %s: renew it", what, c.Subject, c.File, at, inDays(left))
		}
	}
	return -1, ""
}

// inDays prints the time that is left, in days.
func inDays(left time.Duration) string {
	if left < 48*time.Hour {
		return fmt.Sprintf("%d hours", int(left.Hours()))
	}
	return fmt.Sprintf("%d days", int(left.Hours()/24))
}
