// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/version"
)

const (
	// maxAnswer is the maximum size of a decompressed response in bytes.
	maxAnswer = 1 << 20
	// mostResults is the maximum number of results that a query requests from Prometheus. A single
	// result is enough to keep a restart from starting.
	mostResults = 20
	// maxWords is the maximum length in bytes of a text from a response that is shown to users.
	maxWords = 300
)

// server is a client of a Prometheus server.
type server struct {
	api     prometheusv1.API
	timeout time.Duration
}

// newServer returns a client for the configured server, without connecting to it.
func newServer(p Prometheus) (*server, error) {
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: p.URL, BearerTokenFile: p.BearerTokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: p.CAFile},
		Timeout: p.timeout(), UserAgent: "tidekeeper/" + version.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	client.Transport = &bounded{client.Transport}
	// Do not follow redirects, because the token would be sent to their destination.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirected }
	c, err := api.NewClient(api.Config{Address: p.URL, Client: client})
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return &server{prometheusv1.NewAPI(c), p.timeout()}, nil
}

var errRedirected = errors.New("the server redirects to another address, which is not followed")

// bounded is a transport that limits the size of each response after decompression.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}

// ask returns the labels of a query result. If there are several results, it returns the first in
// alphabetical order. It returns "" if there is no result.
func (s *server) ask(ctx context.Context, query string) (result string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, query, time.Time{}, prometheusv1.WithTimeout(s.timeout), prometheusv1.WithLimit(mostResults))
	if err != nil {
		return "", errors.New(s.words(err))
	}
	results, ok := value.(model.Vector)
	switch {
	case !ok:
		return "", fmt.Errorf("it returns a %s, and must return an instant vector", value.Type())
	case len(results) > 0:
		all := make([]string, len(results))
		for i, r := range results {
			all[i] = r.Metric.String()
		}
		return plain(slices.Min(all)), nil
	case len(warnings) > 0:
		// An empty result with a warning may be incomplete, so treat it as an error.
		return "", fmt.Errorf("warning: %s", plain(warnings[0]))
	}
	return "", nil
}

// words describes an error in one line. The description is written to the status of waiting
// ScheduledRestarts, so it must be the same each time the error occurs, and must not contain local
// port numbers.
func (s *server) words(err error) string {
	var tooLarge *http.MaxBytesError
	var answered *prometheusv1.Error
	var name *net.DNSError
	var network *net.OpError
	var timed interface{ Timeout() bool }
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("its answer has more than %d bytes", int64(maxAnswer))
	case errors.Is(err, errRedirected):
		return errRedirected.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return fmt.Sprintf("no answer within %s", s.timeout)
	case errors.As(err, &answered):
		return plain(string(answered.Type) + ": " + answered.Msg)
	case errors.As(err, &name):
		return plain("no such host: " + name.Name)
	case errors.As(err, &network):
		return plain(network.Op + ": " + network.Err.Error())
	}
	if sent := (*url.Error)(nil); errors.As(err, &sent) {
		return plain(sent.Err.Error()) // The inner error omits the address.
	}
	return "its answer is not that of a Prometheus, or ends too early"
}

// plain turns a string from a server into one line of bounded length.
func plain(words string) string {
	words = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, words)
	return text.Shorten(strings.TrimSpace(words), maxWords)
}
