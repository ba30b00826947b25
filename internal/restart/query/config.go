// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Config is the content of the file that the flag --restart-queries names.
type Config struct {
	Prometheus Prometheus `json:"prometheus"`
	Queries    []Query    `json:"queries"`
}

// Prometheus configures the Prometheus server that evaluates the queries.
type Prometheus struct {
	// URL is the base URL of the server, without /api/v1.
	URL string `json:"url"`
	// BearerTokenFile is the path of a file that contains the bearer token for the queries. The
	// file is read again when it changes. By default no token is sent.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// CAFile is the path of a file with the CA certificates that verify the server's certificate.
	// Defaults to the CA certificates of the system.
	CAFile string `json:"caFile,omitempty"`
	// TimeoutSeconds is the time limit of each query in seconds. Defaults to 5.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
}

// Query is a Prometheus query that keeps restarts from starting while it returns results.
type Query struct {
	// Name identifies the query in messages for users.
	Name string `json:"name"`
	// Query is a PromQL expression. The variables $namespace and $name are replaced with the quoted
	// namespace and name of the workload.
	Query string `json:"query"`
}

// Upper bounds of the query file: its size in bytes, the number of queries, the length of a query
// in bytes, and timeoutSeconds, which also has a default.
const (
	maxFile        = 256 << 10
	maxQueries     = 20
	maxQuery       = 4096
	maxTimeout     = 30
	defaultTimeout = 5
)

// Load reads and validates a query file.
func Load(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the queries: %w", err)
	}
	return Parse(data)
}

// Parse validates the content of a query file. The error describes the first invalid field in one
// line.
func Parse(data []byte) (*Config, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has %d bytes, and may have %d", len(data), maxFile)
	}
	c := &Config{}
	if err := decode(data, c); err != nil {
		return nil, fmt.Errorf("parse the queries: %w", err)
	}
	if err := c.Prometheus.check(); err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	if n := len(c.Queries); n == 0 || n > maxQueries {
		return nil, fmt.Errorf("queries: there are %d, and there must be from 1 to %d", n, maxQueries)
	}
	names := map[string]bool{}
	for i, q := range c.Queries {
		if err := q.check(); err != nil {
			return nil, fmt.Errorf("queries[%d]: %w", i, err)
		}
		if names[q.Name] {
			return nil, fmt.Errorf("queries[%d]: another one has the name %s, too", i, q.Name)
		}
		names[q.Name] = true
	}
	return c, nil
}

// decode decodes YAML strictly: unknown and duplicate fields are errors.
func decode(data []byte, c *Config) error {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		_, problem, _ := strings.Cut(err.Error(), "yaml: ")
		lines := strings.TrimPrefix(cmp.Or(problem, err.Error()), "unmarshal errors:")
		return fmt.Errorf("not YAML: %s", strings.Join(strings.Fields(lines), " "))
	}
	strict, err := json.UnmarshalStrict(asJSON, c)
	if wrong := (*stdjson.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s is of the wrong type: %s", cmp.Or(wrong.Field, "the file"), wrong.Value)
	}
	if err != nil || len(strict) == 0 {
		return err
	}
	return fmt.Errorf("%.200s: a file has prometheus (%s) and queries (%s)", strict[0].Error(), fieldsOf[Prometheus](), fieldsOf[Query]())
}

// fieldsOf lists the JSON names of the fields of the type T.
func fieldsOf[T any]() string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (p *Prometheus) check() error {
	if p.TimeoutSeconds == 0 {
		p.TimeoutSeconds = defaultTimeout
	}
	address, err := url.Parse(p.URL)
	switch {
	case p.URL == "":
		return errors.New("url is missing: write that of a Prometheus, such as https://prometheus.monitoring:9090")
	case err != nil:
		return errors.New("url is none: write one such as https://prometheus.monitoring:9090") // Return an error without err, whose message would reveal a password in the URL.
	case address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return fmt.Errorf("url %.100q must begin with https:// or http:// and a host", address.Redacted())
	case address.User != nil:
		return errors.New("url has a user name, which would be in the log: put a token into a file, and name it as bearerTokenFile")
	case address.RawQuery != "" || address.Fragment != "":
		return fmt.Errorf("url %.100q must end with its path", p.URL)
	case address.Scheme == "http" && (p.BearerTokenFile != "" || p.CAFile != ""):
		return errors.New("url begins with http://, which neither protects a token nor has certificates: use https://, or leave out bearerTokenFile and caFile")
	case p.TimeoutSeconds < 1 || p.TimeoutSeconds > maxTimeout:
		return fmt.Errorf("timeoutSeconds is %d, and must be from 1 to %d", p.TimeoutSeconds, maxTimeout)
	}
	return nil
}

func (p *Prometheus) timeout() time.Duration { return time.Duration(p.TimeoutSeconds) * time.Second }

func (q *Query) check() error {
	if len(validation.IsDNS1123Label(q.Name)) > 0 {
		return fmt.Errorf("name %.64q must be of lower case letters, digits and '-', and at most 63 of them", q.Name)
	}
	if len(q.Query) == 0 || len(q.Query) > maxQuery {
		return fmt.Errorf("query has %d bytes, and must have from 1 to %d", len(q.Query), maxQuery)
	}
	_, err := parseTemplate(q.Query)
	return err
}
