package secure

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Limits of the requests to other servers about revocation.
const (
	crlMax        = 16 << 20 // bytes of a revocation list
	ocspMax       = 64 << 10 // bytes of an answer of a responder
	fetchMax      = 5 * time.Second
	redirectsMax  = 3
	urlsMax       = 4  // addresses of one certificate that are tried
	listsMax      = 32 // revocation lists that are kept
	answersMax    = 10_000
	revocationAge = 5 * time.Minute  // time after which a list or an answer is loaded again
	retryPause    = 10 * time.Second // time before an address that failed is asked again
	clockSkew     = 15 * time.Minute // by which the clock of an authority may differ, as in Java
	chainsMax     = 4                // chains to a trusted certificate that are tried
)

// revokedError is the error of a certificate that its authority has revoked.
type revokedError struct {
	name string
	at   time.Time
}

func (e *revokedError) Error() string {
	return fmt.Sprintf("%q was revoked at %s", e.name, e.at.UTC().Format(time.RFC3339))
}

func isRevoked(err error) bool {
	var r *revokedError
	return errors.As(err, &r)
}

// revocation asks OCSP responders, and reads revocation lists by http, https and file, from the addresses
// that certificates name. It refuses a certificate if it cannot find out whether it is revoked, as Java
// does.
type revocation struct {
	client  *http.Client
	now     func() time.Time
	lists   cache[*crl]
	answers cache[*ocsp.Response]
}

func newRevocation(now func() time.Time) *revocation {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	client := &http.Client{
		Transport: transport,
		Timeout:   fetchMax,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > redirectsMax {
				return fmt.Errorf("more than %d redirects", redirectsMax)
			}
			return nil
		},
	}
	return &revocation{
		client:  client,
		now:     now,
		lists:   cache[*crl]{max: listsMax, age: revocationAge, retry: retryPause, now: now},
		answers: cache[*ocsp.Response]{max: answersMax, age: revocationAge, retry: retryPause, now: now},
	}
}

// forget makes the next checks load all lists and answers again. Those that cannot be loaded stay in
// use as long as they are valid.
func (r *revocation) forget() {
	r.lists.outdate()
	r.answers.outdate()
}

// check returns nil if there is a chain in which no certificate is revoked. The trusted certificate at
// the end of a chain is not checked.
func (r *revocation) check(ctx context.Context, chains [][]*x509.Certificate, byOCSP bool) error {
	var first error
	for _, chain := range chains[:min(len(chains), chainsMax)] {
		err := r.checkChain(ctx, chain, byOCSP)
		if err == nil {
			return nil
		}
		if first == nil || isRevoked(err) {
			first = err
		}
	}
	return first
}

func (r *revocation) checkChain(ctx context.Context, chain []*x509.Certificate, byOCSP bool) error {
	for i := range len(chain) - 1 {
		if err := r.checkOne(ctx, chain[i], chain[i+1], byOCSP); err != nil {
			return err
		}
	}
	return nil
}

// checkOne checks one certificate. If byOCSP is set, it first asks the responders, and reads the lists
// only if the responders do not know.
func (r *revocation) checkOne(ctx context.Context, c, issuer *x509.Certificate, byOCSP bool) error {
	var errs []error
	if byOCSP {
		err := r.ask(ctx, c, issuer)
		if err == nil || isRevoked(err) {
			return err
		}
		errs = append(errs, err)
	}
	err := r.look(ctx, c, issuer)
	if err == nil || isRevoked(err) {
		return err
	}
	return fmt.Errorf("whether %q is revoked could not be found out: %w", NameOf(c), reasons(append(errs, err)))
}

// reasons are several errors in one line.
type reasons []error

func (r reasons) Error() string {
	texts := make([]string, len(r))
	for i, err := range r {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (r reasons) Unwrap() []error { return r }

// ask asks the OCSP responders of a certificate.
func (r *revocation) ask(ctx context.Context, c, issuer *x509.Certificate) error {
	var errs []error
	for _, place := range c.OCSPServer[:min(len(c.OCSPServer), urlsMax)] {
		answer, err := r.answers.get(ctx, place+" "+string(c.Raw), r.current, func(ctx context.Context) (*ocsp.Response, error) {
			return r.fetchAnswer(ctx, place, c, issuer)
		})
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		case !r.current(answer):
			errs = append(errs, fmt.Errorf("%s: the answer is out of date", place))
		case answer.Status == ocsp.Good:
			return nil
		case answer.Status == ocsp.Revoked:
			return &revokedError{NameOf(c), answer.RevokedAt}
		default:
			errs = append(errs, fmt.Errorf("%s: the responder does not know the certificate", place))
		}
	}
	if len(errs) == 0 {
		return errors.New("the certificate names no OCSP responder")
	}
	return reasons(errs)
}

// current reports whether an answer is valid now.
func (r *revocation) current(a *ocsp.Response) bool {
	return r.within(a.ThisUpdate, a.NextUpdate)
}

// within reports whether now lies between two updates, with a tolerance for clocks that differ. A zero
// next update is not a bound.
func (r *revocation) within(this, next time.Time) bool {
	now := r.now()
	return !now.Add(clockSkew).Before(this) && (next.IsZero() || !now.Add(-clockSkew).After(next))
}

// fetchAnswer asks a responder, and checks that the issuer, or a delegate of the issuer, has signed the
// answer.
func (r *revocation) fetchAnswer(ctx context.Context, place string, c, issuer *x509.Certificate) (*ocsp.Response, error) {
	question, err := ocsp.CreateRequest(c, issuer, nil)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, place, bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/ocsp-request")
	body, err := r.fetch(request, ocspMax)
	if err != nil {
		return nil, err
	}
	answer, err := ocsp.ParseResponseForCert(body, c, issuer)
	if err != nil {
		return nil, err
	}
	// The library does not check what a certificate inside the answer may be used for. Without this
	// check, every owner of a certificate of the authority could sign answers.
	if d := answer.Certificate; d != nil && !d.Equal(issuer) {
		if !mayAnswer(d) || r.now().Before(d.NotBefore) || r.now().After(d.NotAfter) {
			return nil, fmt.Errorf("the answer is signed by %q, which may not sign it", NameOf(d))
		}
	}
	return answer, nil
}

func mayAnswer(c *x509.Certificate) bool {
	for _, use := range c.ExtKeyUsage {
		if use == x509.ExtKeyUsageOCSPSigning {
			return true
		}
	}
	return false
}

// look looks a certificate up in the revocation lists that it names.
func (r *revocation) look(ctx context.Context, c, issuer *x509.Certificate) error {
	var errs []error
	places := c.CRLDistributionPoints
	for _, place := range places[:min(len(places), urlsMax)] {
		list, err := r.lists.get(ctx, place, r.recent, func(ctx context.Context) (*crl, error) {
			body, err := r.fetchList(ctx, place)
			if err != nil {
				return nil, err
			}
			return parseCRL(body)
		})
		if err == nil {
			err = list.covers(c, issuer)
		}
		if err == nil && !r.recent(list) {
			err = errors.New("the list is out of date")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
			continue
		}
		if at, ok := list.revoked[c.SerialNumber.String()]; ok {
			return &revokedError{NameOf(c), at}
		}
		return nil
	}
	if len(errs) == 0 {
		return errors.New("the certificate names no revocation list")
	}
	return reasons(errs)
}

// recent reports whether a list is valid now.
func (r *revocation) recent(l *crl) bool { return r.within(l.list.ThisUpdate, l.list.NextUpdate) }

func (r *revocation) fetchList(ctx context.Context, place string) ([]byte, error) {
	u, err := url.Parse(place)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "http", "https":
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
		if err != nil {
			return nil, err
		}
		return r.fetch(request, crlMax)
	case "file":
		// Reading a pipe or a device could block for ever.
		switch s, err := os.Stat(u.Path); {
		case err != nil:
			return nil, err
		case !s.Mode().IsRegular():
			return nil, errors.New("not a file")
		}
		f, err := os.Open(u.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readLimited(f, crlMax)
	}
	return nil, fmt.Errorf("lists by %q are not supported: use http, https or file", u.Scheme)
}

// fetch sends a request and returns the body of the answer.
func (r *revocation) fetch(request *http.Request, limit int64) ([]byte, error) {
	answer, err := r.client.Do(request)
	if err != nil {
		// The error contains the address, which the caller adds anyway.
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err
		}
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	return readLimited(answer.Body, limit)
}

// readLimited reads at most limit bytes. It returns an error if there are more.
func readLimited(from io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return b, err
}
