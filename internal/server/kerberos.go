package server

import (
	"errors"
	"fmt"
	"strings"

	"bellwether/internal/config"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/sasl/kerberos"
)

// openKerberosLogin returns the client of a section of the JAAS file. It does not ask the KDC.
func openKerberosLogin(c *config.Config, k *jaas.Kerberos) (*kerberos.Login, error) {
	login := kerberos.Config{Conf: c.SASL.Krb5Conf, Principal: k.Principal}
	switch {
	case k.UseKeyTab:
		login.KeyTab = k.KeyTab
	default:
		login.TicketCache = k.TicketCache
	}
	if login.KeyTab == "" && login.TicketCache == "" {
		return nil, errors.New("it names no file: add the option keyTab or ticketCache")
	}
	return kerberos.NewLogin(login)
}

// openKerberosService returns the service of a section of the JAAS file.
func openKerberosService(c *config.Config, k *jaas.Kerberos) (*kerberos.Service, error) {
	switch {
	case !k.UseKeyTab || k.KeyTab == "":
		return nil, errors.New("logins can be accepted with a keytab only: set useKeyTab=true and keyTab")
	case !k.StoreKey:
		return nil, errors.New("the keys may not be used for accepting logins: set storeKey=true")
	}
	principal := k.Principal
	if !strings.Contains(principal, "@") {
		realm, err := kerberos.DefaultRealm(c.SASL.Krb5Conf)
		if err != nil {
			return nil, fmt.Errorf("the principal %s has no realm: %w", principal, err)
		}
		principal += "@" + realm
	}
	return kerberos.NewService(principal, k.KeyTab)
}
