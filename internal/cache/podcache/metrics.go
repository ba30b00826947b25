// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds this package's metrics, each of which has the label "kind".
type metrics struct{ fallbacks, verified, differences *prometheus.CounterVec }

func newMetrics() *metrics {
	byKind := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"kind"})
	}
	return &metrics{
		fallbacks: byKind("tidekeeper_cache_fallbacks_total",
			"1 if the API server sent objects of a kind in another encoding than the protobuf that the cache decodes itself, so that client-go decodes them since, at several times the CPU; by kind."),
		verified: byKind("tidekeeper_cache_decoding_verified_total",
			"Objects that client-go decoded, too, to compare them with the cached fields; by kind. Only with --verify-decoding."),
		differences: byKind("tidekeeper_cache_decoding_differences_total",
			"Objects of which client-go decoded other values for the cached fields, so that its values are cached, and answers that it decoded into other objects, so that it decodes all since; by kind. Only with --verify-decoding."),
	}
}

func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.fallbacks), registry.Register(m.verified), registry.Register(m.differences))
}

// RegisterMetrics registers this package's metrics without values. It is used to generate
// docs/reference.
func RegisterMetrics(registry prometheus.Registerer) error { return newMetrics().register(registry) }
