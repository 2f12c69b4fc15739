package secure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// given returns settings as if a file contained them. The arguments are keys and values in turn.
func given(words ...string) map[string]Value {
	values := map[string]Value{}
	for i := 0; i < len(words); i += 2 {
		values[words[i]] = Value{words[i+1], fmt.Sprintf("zoo.cfg line %d", i/2+1)}
	}
	return values
}

// TestDefaults checks that the defaults are those of ZooKeeper 3.9.
func TestDefaults(t *testing.T) {
	for _, f := range []Family{Clients, Servers} {
		got, err := Parse(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Settings{
			Family: f, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, ClientAuth: Need,
			KeyStore: StoreFile{key: string(f) + "keyStore.location"}, TrustStore: StoreFile{key: string(f) + "trustStore.location"},
			VerifyServerNames: true, VerifyClientNames: f == Servers, ReverseLookup: f == Servers, DetectionTimeout: 5 * time.Second,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", f, got, want)
		}
	}
}

// TestEverySetting reads each key into its field.
func TestEverySetting(t *testing.T) {
	got, err := Parse(Clients, given(
		"ssl.keyStore.location", "/etc/zk/key.p12", "ssl.keyStore.password", "hidden1", "ssl.keyStore.passwordPath", "/run/secrets/key",
		"ssl.trustStore.location", "/etc/zk/trust", "ssl.trustStore.type", "jks", "ssl.trustStore.password", "hidden2",
		"ssl.protocol", "TLSv1.2", "ssl.enabledProtocols", "TLSv1.3, TLSv1.2", "ssl.ciphersuites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256",
		"ssl.clientAuth", "WANT", "ssl.hostnameVerification", "TRUE", "ssl.clientHostnameVerification", "true", "ssl.allowReverseDnsLookup", "true",
		"ssl.crl", "true", "ssl.ocsp", "true", "ssl.handshakeDetectionTimeoutMillis", "700", "ssl.authProvider", "x509", "ssl.sslProvider", "OPENSSL",
		"ssl.quorum.protocol", "nonsense",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Family:     Clients,
		KeyStore:   StoreFile{"/etc/zk/key.p12", PKCS12, "hidden1", "/run/secrets/key", "", "ssl.keyStore.location"},
		TrustStore: StoreFile{"/etc/zk/trust", JKS, "hidden2", "", "", "ssl.trustStore.location"},
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		ClientAuth: Want, VerifyServerNames: true, VerifyClientNames: true, ReverseLookup: true, CRL: true, OCSP: true, DetectionTimeout: 700 * time.Millisecond,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "hidden") {
		t.Errorf("printing the settings shows a password: %s", text)
	}
}

// TestVersions shows which versions of TLS the two keys enable.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		protocol, enabled string
		min, max          uint16
		notice            string
	}{
		{"", "", tls.VersionTLS12, tls.VersionTLS13, ""},
		{"TLSv1.3", "", tls.VersionTLS12, tls.VersionTLS13, ""},
		{"TLS", "", tls.VersionTLS12, tls.VersionTLS13, ""},
		{"TLSv1.2", "", tls.VersionTLS12, tls.VersionTLS12, ""},
		{"TLSv1.2", "TLSv1.3", tls.VersionTLS13, tls.VersionTLS13, ""},
		{"", "TLSv1.2,SSLv2Hello", tls.VersionTLS12, tls.VersionTLS12, ""},
		{"TLSv1", "", tls.VersionTLS10, tls.VersionTLS10, "ssl.protocol allows TLS 1.0, which is not safe any more"},
		{"", "TLSv1.2,TLSv1.1,TLSv1.1", tls.VersionTLS11, tls.VersionTLS12, "ssl.enabledProtocols allows TLS 1.1, which is not safe any more"},
	} {
		values := map[string]Value{}
		if c.protocol != "" {
			values["ssl.protocol"] = Value{Text: c.protocol}
		}
		if c.enabled != "" {
			values["ssl.enabledProtocols"] = Value{Text: c.enabled}
		}
		s, err := Parse(Clients, values)
		if err != nil || s.MinVersion != c.min || s.MaxVersion != c.max {
			t.Errorf("%q %q: %x to %x, %v", c.protocol, c.enabled, s.MinVersion, s.MaxVersion, err)
		}
		if got := strings.Join(s.Notices, "\n"); (got == "") != (c.notice == "") || !strings.Contains(got, c.notice) {
			t.Errorf("%q %q: notice %q, want %q", c.protocol, c.enabled, got, c.notice)
		}
	}
}

// TestCipherSuites shows which suites a list of Java's names selects.
func TestCipherSuites(t *testing.T) {
	for _, c := range []struct {
		list     string
		min, max uint16
		suites   []uint16
		notice   string
	}{
		{"", tls.VersionTLS12, tls.VersionTLS13, nil, ""},
		{"TLS_AES_128_GCM_SHA256", tls.VersionTLS13, tls.VersionTLS13, nil, "Go does not choose among the suites of TLSv1.3: besides TLS_AES_128_GCM_SHA256 it uses the others too"},
		{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, ""},
		{"TLS_EMPTY_RENEGOTIATION_INFO_SCSV,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}, ""},
		{"SSL_RSA_WITH_3DES_EDE_CBC_SHA", tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}, "suites that are not safe any more: SSL_RSA_WITH_3DES_EDE_CBC_SHA"},
	} {
		s, err := Parse(Servers, given("ssl.quorum.ciphersuites", c.list))
		if err != nil || s.MinVersion != c.min || s.MaxVersion != c.max || !slices.Equal(s.CipherSuites, c.suites) {
			t.Errorf("%q: %x to %x, %x, %v", c.list, s.MinVersion, s.MaxVersion, s.CipherSuites, err)
		}
		if got := strings.Join(s.Notices, "\n"); (got == "") != (c.notice == "") || !strings.Contains(got, c.notice) {
			t.Errorf("%q: notice %q, want %q", c.list, got, c.notice)
		}
	}
}

// TestUnusableSettings shows the message for each setting that stops the start. The message names the
// key, the value, its place, and what to use instead.
func TestUnusableSettings(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"ssl.protocol", "SSLv3", "there is no such version of TLS here: use TLSv1.3 or TLSv1.2"},
		{"ssl.protocol", "Default", "there is no such version of TLS here"},
		{"ssl.enabledProtocols", "SSLv3", "use TLSv1.2, TLSv1.3 or both"},
		{"ssl.enabledProtocols", "TLSv1.3,TLSv1.1", "the list leaves out a version between others"},
		{"ssl.ciphersuites", "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "there is no such cipher suite here: use TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
		{"ssl.ciphersuites", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "use TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		{"ssl.ciphersuites", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "use TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
		{"ssl.ciphersuites", "TLS_AES_128_CCM_SHA256", "use TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 for RSA keys, or TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 for EC keys"},
		{"ssl.ciphersuites", "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "there is no cipher suite in the list"},
		{"ssl.clientAuth", "maybe", "use none, want or need"},
		{"ssl.handshakeDetectionTimeoutMillis", "5s", "use a number such as 5000"},
		{"ssl.context.supplier.class", "com.example.Supplier", "there is no Java here: remove it, and set ssl.keyStore.location and ssl.trustStore.location"},
		{"ssl.keyStore.type", "BCFKS", "keytool -importkeystore -deststoretype PKCS12"},
		{"ssl.trustStore.location", "/etc/trust.bcfks", "keytool -importkeystore -deststoretype PKCS12"},
		{"ssl.keyStore.type", "JCEKS", "use PEM, PKCS12 or JKS"},
		{"ssl.keyStore.location", "/etc/zk/tls.crt", "set ssl.keyStore.type to PEM, PKCS12 or JKS"},
		{"ssl.keyStore.location", "/etc/zk/KEY.PEM", "set ssl.keyStore.type"},
		{"ssl.authProvider", "mine", "there is no such scheme for certificates: remove it, or use x509"},
		{"ssl.x509.clientCertIdType", "CN", "use SDN (the subject) or SAN (an alternative name)"},
	} {
		_, err := Parse(Clients, given(c.key, c.value))
		var one *SettingError
		if !errors.As(err, &one) || !strings.HasPrefix(err.Error(), c.key+"=") || !strings.Contains(err.Error(), "(zoo.cfg line 1)") ||
			!strings.Contains(err.Error(), c.want) || one.Instead == "" {
			t.Errorf("%s=%s: %v; want %q", c.key, c.value, err, c.want)
		}
	}
	if _, err := Parse(Servers, given("ssl.quorum.sharedName", "*.example.com")); err == nil || !strings.Contains(err.Error(), "not one name: use a name that all certificates of servers have, without an asterisk") {
		t.Errorf("a pattern as the shared name: %v", err)
	}
	for want, values := range map[string]map[string]Value{
		"none of these suites is one of TLSv1.3, the only version enabled": given("ssl.enabledProtocols", "TLSv1.3", "ssl.ciphersuites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
		"all of these suites are of TLSv1.3, which is not enabled":         given("ssl.protocol", "TLSv1.2", "ssl.ciphersuites", "TLS_AES_128_GCM_SHA256"),
		"there is no such group":                         given("ssl.x509.clientCertIdType", "SAN", "ssl.x509.clientCertIdSanMatchType", "6", "ssl.x509.clientCertIdSanExtractMatcherGroupIndex", "1"),
		"not a kind of alternative name that has a text": given("ssl.x509.clientCertIdType", "SAN"),
		"use an expression of Go's syntax":               given("ssl.x509.clientCertIdType", "SAN", "ssl.x509.clientCertIdSanMatchType", "6", "ssl.x509.clientCertIdSanMatchRegex", "(?=x)"),
	} {
		if _, err := Parse(Clients, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q", slices.Sorted(maps.Keys(values)), err, want)
		}
	}
}

// TestAllErrorsAreReported shows that one start reports every setting that is wrong.
func TestAllErrorsAreReported(t *testing.T) {
	_, err := Parse(Servers, given("ssl.quorum.clientAuth", "maybe", "ssl.quorum.protocol", "SSLv3", "ssl.quorum.keyStore.type", "X"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}

// TestNotices shows the settings that are accepted with a notice.
func TestNotices(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"ssl.quorum.hostnameVerification", "yes", "ssl.quorum.hostnameVerification=yes means false, as in ZooKeeper: only true means true"},
		{"ssl.quorum.handshakeDetectionTimeoutMillis", "0", "ssl.quorum.handshakeDetectionTimeoutMillis=0 means 5000, as in ZooKeeper"},
		{"ssl.quorum.keyStore.location", "/x.pem", "ssl.quorum.trustStore.location is not set: every authority that this system trusts is trusted"},
		{"ssl.quorum.authProvider", "x509", "ssl.quorum.authProvider is not a key of TLS and has no effect"},
		{"ssl.quorum.truststore.location", "/x.pem", "ssl.quorum.truststore.location is not a key of TLS and has no effect"},
	} {
		s, err := Parse(Servers, given(c.key, c.value))
		if err != nil || len(s.Notices) != 1 || !strings.Contains(s.Notices[0], c.want) {
			t.Errorf("%s=%s: %q, %v", c.key, c.value, s.Notices, err)
		}
	}
	s, err := Parse(Servers, given("ssl.quorum.hostnameVerification", "false", "ssl.quorum.sharedName", "zk"))
	if err != nil || len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "ssl.quorum.sharedName has no effect while ssl.quorum.hostnameVerification is false") {
		t.Errorf("%q, %v", s.Notices, err)
	}
	s, err = Parse(Clients, given("ssl.hostnameVerification", "false", "ssl.clientHostnameVerification", "true"))
	if err != nil || s.VerifyClientNames || len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "no effect while ssl.hostnameVerification is false") {
		t.Errorf("%+v, %v", s, err)
	}
}
