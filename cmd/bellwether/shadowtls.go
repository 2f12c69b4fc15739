package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
)

// shadowTLS are the flags of shadow for TLS and for the rights at the observer. Each names files.
type shadowTLS struct {
	listen, super string
	old, observer []string
}

// load reads the files into the options of a relay.
func (f *shadowTLS) load(o *relay.Options) (err error) {
	if f.listen != "" {
		if o.ListenTLS, err = shadowStore(f.listen, secure.Clients); err != nil {
			return err
		}
	}
	if o.OldTLS, err = shadowStores(f.old); err != nil {
		return err
	}
	if o.ObserverTLS, err = shadowStores(f.observer); err != nil {
		return err
	}
	if f.super != "" {
		text, err := os.ReadFile(f.super)
		if err != nil {
			return err
		}
		auth := strings.TrimRight(string(text), "\r\n")
		if user, password, _ := strings.Cut(auth, ":"); user == "" || password == "" {
			return fmt.Errorf("%s: want super:password", f.super)
		}
		o.Super = &shadow.Credential{Scheme: "digest", Auth: []byte(auth)}
	}
	return nil
}

func shadowStores(files []string) (stores []*secure.Store, err error) {
	for _, file := range files {
		s, err := shadowStore(file, secure.Programs)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return stores, nil
}

// shadowStore opens the stores that the properties of a family in a file name.
func shadowStore(file string, family secure.Family) (*secure.Store, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	properties, err := ensemble.ReadProperties(ensemble.Latin1(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	values := map[string]secure.Value{}
	for _, p := range properties {
		if strings.HasPrefix(p.Key, string(family)) && !strings.HasPrefix(p.Key, string(secure.Servers)) {
			values[p.Key] = secure.Value{Text: p.Value, From: fmt.Sprintf("%s line %d", file, p.Line)}
		}
	}
	if len(values) == 0 {
		return nil, errors.New(file + ": no property begins with " + string(family))
	}
	settings, err := secure.Parse(family, values)
	if err != nil {
		return nil, err
	}
	return secure.Open(settings)
}
