package config

import "strings"

// Security features that this version lacks, as errors name them.
const (
	noTLS      = "TLS"
	noSASL     = "SASL"
	noEnforced = "enforced authentication"
	withoutTLS = "it has an effect with TLS only, which this version does not support"
	withoutSAS = "it has an effect with SASL only, which this version does not support"
)

var securityKeys = []key{
	{name: "authProvider.*", kind: system, form: pattern, status: stops,
		effect: "Java class of a further authentication scheme.",
		reason: "schemes other than ip and digest"},
	{name: "DigestAuthenticationProvider.enabled", kind: system, form: boolean, def: "true", status: stops, when: "false", same: "true",
		effect: "The scheme digest can be used.",
		reason: "disabling the scheme digest"},
	{name: "DigestAuthenticationProvider.superDigest", live: true, kind: system, form: text, secret: true,
		effect: "The digest identity with all permissions: a name such as super, a colon, and the base64 of the hash of name:password.",
		into:   func(c *Config) any { return &c.Access.SuperDigest }},
	{name: "DigestAuthenticationProvider.digestAlg", live: true, kind: system, form: word, def: "SHA1", words: digestNames(),
		effect: "Hash algorithm of the scheme digest.",
		into:   func(c *Config) any { return &c.Access.DigestHash }},
	{name: "IPAuthenticationProvider.usexforwardedfor", kind: system, form: boolean, def: "false", same: "false",
		effect: "The admin server trusts the header X-Forwarded-For.",
		status: ignored, reason: noAdmin},
	{name: "X509AuthenticationProvider.superUser", kind: system, form: text,
		effect: "Subject of the certificate with all permissions.",
		status: ignored, reason: withoutTLS + ", so it makes nobody a super user"},
	{name: "superUser", kind: system, form: text,
		effect: "SASL user with all permissions.",
		status: ignored, reason: withoutSAS + ", so it makes nobody a super user"},
	{name: "superUser.*", kind: system, form: pattern,
		effect: "Further SASL users with all permissions.",
		status: ignored, reason: withoutSAS + ", so it makes nobody a super user"},
	{name: "skipACL", kind: system, form: yesNo, exact: "yes", def: "no",
		effect: "With the exact value yes, ACLs are not checked.",
		into:   func(c *Config) any { return &c.Access.SkipACL }},
	{name: "sessionRequireClientSASLAuth", kind: system, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "Clients must log in by SASL.", reason: noSASL},
	{name: "enforce.auth.enabled", kind: system, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "Clients must log in by one of enforce.auth.schemes.", reason: noEnforced},
	{name: "enforce.auth.schemes", kind: system, form: list,
		effect: "Schemes for enforce.auth.enabled.",
		status: ignored, reason: "it has an effect with enforce.auth.enabled only"},
	{name: "allowSaslFailedClients", kind: system, form: boolean, def: "false", same: "false",
		effect: "Clients whose SASL login failed may continue without it.",
		status: ignored, reason: withoutSAS},
	{name: "ensembleAuthName", kind: system, form: list,
		effect: "Names under which clients may address this ensemble.",
		status: ignored, reason: "it has an effect with the scheme ensemble only, which this version does not support"},
	{name: "requireKerberosConfig", kind: system, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "A missing Kerberos configuration is an error.", reason: noSASL + " by Kerberos"},
	{name: "kerberos.removeHostFromPrincipal", kind: system, form: boolean, def: "false", effect: "Kerberos names lose their host.",
		status: ignored, reason: withoutSAS},
	{name: "kerberos.removeRealmFromPrincipal", kind: system, form: boolean, def: "false", effect: "Kerberos names lose their realm.",
		status: ignored, reason: withoutSAS},
	{name: "kerberos.canonicalizeHostNames", kind: system, form: boolean, def: "false", effect: "Server names are resolved for Kerberos.",
		status: ignored, reason: withoutSAS},
	{name: "security.auth_to_local", kind: system, form: text, effect: "Rules that shorten Kerberos names.",
		status: ignored, reason: withoutSAS},
	{name: "server.principal", kind: system, form: text, effect: "Kerberos name of the server; can only be given as a -D flag, because in zoo.cfg it would be a server line.",
		status: ignored, reason: withoutSAS},
	{name: "server.realm", kind: system, form: text, effect: "Kerberos realm of the server; can only be given as a -D flag, because in zoo.cfg it would be a server line.",
		status: ignored, reason: withoutSAS},
	{name: "letAnySaslUserDoX", kind: system, form: text, effect: "SASL id in ACLs that every SASL user satisfies.",
		status: ignored, reason: withoutSAS + ", so no client satisfies it"},
	{name: "sasl.serverconfig", kind: system, form: text, def: "Server", effect: "Section of the JAAS file for clients.",
		status: ignored, reason: withoutSAS},
	{name: "java.security.auth.login.config", kind: java, form: path, status: stops,
		effect: "JAAS file with the SASL logins of servers and clients.", reason: noSASL},
	{name: "quorum.auth.enableSasl", kind: parsed, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "Servers log in to each other by SASL.", reason: noSASL + " between servers"},
	{name: "quorum.auth.learnerRequireSasl", kind: parsed, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "A learner requires that login.", reason: noSASL + " between servers"},
	{name: "quorum.auth.serverRequireSasl", kind: parsed, form: boolean, def: "false", status: stops, when: "true", same: "false",
		effect: "A leader requires that login.", reason: noSASL + " between servers"},
	{name: "quorum.auth.learner.saslLoginContext", kind: parsed, form: text, def: "QuorumLearner", effect: "Section of the JAAS file for learners.",
		status: ignored, reason: withoutSAS},
	{name: "quorum.auth.server.saslLoginContext", kind: parsed, form: text, def: "QuorumServer", effect: "Section of the JAAS file for leaders.",
		status: ignored, reason: withoutSAS},
	{name: "quorum.auth.kerberos.servicePrincipal", kind: parsed, form: text, def: "zkquorum/localhost", effect: "Kerberos name of the servers.",
		status: ignored, reason: withoutSAS},
	{name: "fips-mode", kind: system, form: boolean, def: "true", effect: "Only algorithms of FIPS 140 are used for TLS and SASL.",
		status: ignored, reason: "this version uses neither TLS nor SASL"},
}

// tlsKeys returns the TLS keys: those of the ports, and the two families ssl.x for
// clients and ssl.quorum.x for servers.
func tlsKeys() []key {
	keys := []key{
		{name: "secureClientPort", kind: parsed, form: decimal, max: 65535, status: stops, effect: "Port for TLS clients.", reason: noTLS},
		{name: "secureClientPortAddress", kind: parsed, form: host, status: stops, effect: "Address of that port.", reason: noTLS},
		{name: "client.portUnification", kind: system, form: boolean, def: "false", status: stops, when: "true", same: "false",
			effect: "The client port accepts TLS as well.", reason: noTLS},
		{name: "client.certReload", kind: system, form: boolean, def: "false", same: "false",
			effect: "Certificates are read again when they change.", status: ignored, reason: withoutTLS},
		{name: "sslQuorum", kind: parsed, form: boolean, def: "false", status: stops, when: "true", same: "false",
			effect: "Servers speak TLS to each other.", reason: noTLS + " between servers"},
		{name: "portUnification", kind: parsed, form: boolean, def: "false", status: stops, when: "true", same: "false",
			effect: "The quorum port accepts connections with and without TLS.", reason: noTLS + " between servers"},
		{name: "sslQuorumReloadCertFiles", kind: parsed, form: boolean, def: "false", same: "false",
			effect: "Certificates between servers are read again when they change.", status: ignored, reason: withoutTLS},
		{name: "ssl.authProvider", kind: system, form: text, def: "x509", status: stops,
			effect: "Scheme that checks client certificates.", reason: noTLS},
	}
	for _, family := range []struct{ prefix, of string }{{"ssl.", "clients"}, {"ssl.quorum.", "servers"}} {
		for _, k := range tlsFamily {
			k.name, k.kind, k.status, k.reason = family.prefix+k.name, system, stops, noTLS
			k.effect = strings.ReplaceAll(k.effect, "PEERS", family.of)
			k.secret = k.secret || strings.HasSuffix(k.name, ".password")
			keys = append(keys, k)
		}
	}
	return append(keys,
		key{name: "ssl.sslProvider", kind: system, form: text, def: "JDK", effect: "Java library that does TLS.",
			status: ignored, reason: "there is one TLS library"},
		key{name: "ssl.*", kind: system, form: pattern, status: stops, secret: true, effect: "Any other TLS key.", reason: noTLS})
}

// tlsFamily holds the TLS keys that exist both for clients and for servers.
var tlsFamily = []key{
	{name: "keyStore.location", form: path, effect: "File with the certificate shown to PEERS."},
	{name: "keyStore.password", form: text, effect: "Password of that file."},
	{name: "keyStore.passwordPath", form: path, effect: "File with that password; it takes precedence."},
	{name: "keyStore.type", form: text, says: "by the suffix of the file", effect: "JKS, PEM, PKCS12 or BCFKS."},
	{name: "trustStore.location", form: path, effect: "File with the authorities that PEERS' certificates are checked against."},
	{name: "trustStore.password", form: text, effect: "Password of that file."},
	{name: "trustStore.passwordPath", form: path, effect: "File with that password; it takes precedence."},
	{name: "trustStore.type", form: text, says: "by the suffix of the file", effect: "JKS, PEM, PKCS12 or BCFKS."},
	{name: "protocol", form: text, def: "TLSv1.3", effect: "Version of TLS."},
	{name: "enabledProtocols", form: list, says: "by protocol", effect: "Versions of TLS that may be negotiated."},
	{name: "ciphersuites", form: list, says: "by the runtime", effect: "Cipher suites by their Java names."},
	{name: "clientAuth", form: word, words: []string{"none", "want", "need"}, def: "need", effect: "Whether PEERS must show a certificate."},
	{name: "hostnameVerification", form: boolean, def: "true", effect: "Host names are compared with certificates."},
	{name: "clientHostnameVerification", form: boolean, says: "false for clients, true for servers", effect: "The same for the connecting side."},
	{name: "allowReverseDnsLookup", form: boolean, says: "false for clients, true for servers", effect: "Addresses may be resolved for that comparison."},
	{name: "crl", form: boolean, def: "false", effect: "Revocation lists are consulted."},
	{name: "ocsp", form: boolean, def: "false", effect: "Revocation is checked by OCSP."},
	{name: "handshakeDetectionTimeoutMillis", form: number, unit: "ms", def: "5000", effect: "Time to distinguish TLS from plain connections on a shared port."},
	{name: "context.supplier.class", form: text, effect: "Java class that makes TLS contexts."},
}
