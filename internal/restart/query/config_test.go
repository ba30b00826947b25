// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const good = `
prometheus: {url: "https://prometheus.monitoring:9090/path", bearerTokenFile: /token, caFile: /ca.crt}
queries:
- {name: alerts, query: 'ALERTS{namespace=$namespace}'}
- {name: own, query: 'busy{deployment=$name}'}
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(good))
	want := &Config{
		Prometheus: Prometheus{URL: "https://prometheus.monitoring:9090/path", BearerTokenFile: "/token", CAFile: "/ca.crt", TimeoutSeconds: 5},
		Queries:    []Query{{"alerts", "ALERTS{namespace=$namespace}"}, {"own", "busy{deployment=$name}"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWrongFiles(t *testing.T) {
	with := func(prometheus, queries string) string {
		return "prometheus: {" + prometheus + "}\nqueries: [" + queries + "]"
	}
	const server, one = "url: 'https://p:9090'", "{name: a, query: up}"
	for name, tc := range map[string]struct{ file, want string }{
		"nothing":                  {"", "prometheus: url is missing"},
		"no YAML":                  {"{", "parse the queries: not YAML: line 1: "},
		"a field that is none":     {with(server+", insecure: true", one), `parse the queries: unknown field "prometheus.insecure": a file has prometheus (url, bearerTokenFile, caFile, timeoutSeconds) and queries (name, query)`},
		"a field of a query":       {with(server, "{name: a, expr: up}"), `parse the queries: unknown field "queries[0].expr": a file has`},
		"a field in capitals":      {with("URL: 'https://p:9090'", one), `unknown field "prometheus.URL"`},
		"a field twice":            {with(server+", "+server, one), `not YAML: line 1: `},
		"a text for a number":      {with(server+", timeoutSeconds: soon", one), "parse the queries: prometheus.timeoutSeconds is of the wrong type: string"},
		"a text for all":           {"up", "parse the queries: the file is of the wrong type: string"},
		"no queries":               {with(server, ""), "queries: there are 0, and there must be from 1 to 20"},
		"too many":                 {with(server, strings.Repeat(one+",", 21)), "there are 21"},
		"no URL":                   {with("url: 'prometheus:9090'", one), "must begin with https:// or http:// and a host"},
		"no host":                  {with("url: 'https:///x'", one), "must begin with https:// or http:// and a host"},
		"a URL that is none":       {with("url: 'https://u:secret@a b'", one), "url is none"},
		"another scheme":           {with("url: 'file:///etc/passwd'", one), "must begin with https:// or http:// and a host"},
		"a password in the URL":    {with("url: 'https://u:secret@p'", one), "url has a user name"},
		"a query in the URL":       {with("url: 'https://p?a=b'", one), "must end with its path"},
		"a token in the clear":     {with("url: 'http://p', bearerTokenFile: /token", one), "neither protects a token"},
		"too long a time":          {with(server+", timeoutSeconds: 31", one), "timeoutSeconds is 31, and must be from 1 to 30"},
		"a name with spaces":       {with(server, "{name: 'a b', query: up}"), `queries[0]: name "a b" must be of lower case letters`},
		"the same name twice":      {with(server, one+","+one), "queries[1]: another one has the name a, too"},
		"an empty query":           {with(server, "{name: a, query: ''}"), "queries[0]: query has 0 bytes"},
		"a query that is too long": {with(server, "{name: a, query: "+strings.Repeat("u", 4097)+"}"), "queries[0]: query has 4097 bytes"},
		"another variable":         {with(server, "{name: a, query: 'up{a=$kind}'}"), "queries[0]: query has $kind: write $namespace or $name"},
		"a quoted variable":        {with(server, `{name: a, query: 'up{a="$namespace"}'}`), "query has $namespace in a string: write $namespace without quotes"},
		"a file that is too big":   {with(server, one) + "#" + strings.Repeat(" ", maxFile), "the file has"},
	} {
		_, err := Parse([]byte(tc.file))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
			continue
		}
		if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is more than a line, or has a secret: %v", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasPrefix(err.Error(), "read the queries: ") {
		t.Errorf("a file that does not exist: %v", err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file); err != nil || len(c.Queries) != 2 {
		t.Errorf("%+v: %v", c, err)
	}
}

func TestRender(t *testing.T) {
	for query, want := range map[string]string{
		`up`: `up`,
		`ALERTS{alertstate="firing",namespace=$namespace}`: `ALERTS{alertstate="firing",namespace="shop"}`,
		`$namespace$name`:                `"shop""web"`,
		`up{a=~"x$",b='$',c=$name}`:      `up{a=~"x$",b='$',c="web"}`,
		`up{a="\"",b=$name} # '$name "`:  `up{a="\"",b="web"} # '$name "`,
		"up # it's\n{a=$name}":           "up # it's\n{a=\"web\"}",
		"up{a=`\\`,b=$name}":             "up{a=`\\`,b=\"web\"}",
		`up{a="$names"} == on($name) up`: `up{a="$names"} == on("web") up`,
	} {
		p, err := parseTemplate(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := p.render("shop", "web"); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// FuzzRender checks that the names that render inserts always become string literals: the number of
// string literals in the rendered query must not depend on the names.
func FuzzRender(f *testing.F) {
	f.Add(`up{a="b",c=$name}`, "shop", "web")
	f.Add(`up{a='\'',c=$namespace} # "`, `"} or vector(1) or {a="`, "\\\n`")
	f.Fuzz(func(t *testing.T, query, namespace, name string) {
		p, err := parseTemplate(query)
		if err != nil {
			return
		}
		strings := stringsOf(t, p.render(namespace, name))
		plain := stringsOf(t, p.render("n", "n"))
		if len(strings) != len(plain) {
			t.Errorf("%q with %q and %q has the strings %q, and with plain names %q", query, namespace, name, strings, plain)
		}
	})
}

// stringsOf returns the string literals of a PromQL query.
func stringsOf(t *testing.T, query string) (all []string) {
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case '#':
			end := strings.IndexByte(query[i:], '\n')
			if end < 0 {
				return all
			}
			i += end
		case '"', '\'', '`':
			end := endOfString(query, i)
			if end < 0 {
				t.Fatalf("a string of %q has no end", query)
			}
			all = append(all, query[i:end])
			i = end - 1
		}
	}
	return all
}
