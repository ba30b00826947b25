// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
)

// PoolDetail is a NodePool with its nodes and events.
type PoolDetail struct {
	Pool     `json:",inline"`
	Selector string   `json:"selector"`
	Settings []string `json:"settings"` // what the pool asks for
	Members  []Member `json:"members"`  // the fullest first
	Events   []Event  `json:"events"`
}

// Member is a node of a pool.
type Member struct {
	Name   string   `json:"name"`
	Ready  bool     `json:"ready"`
	Levels []Level  `json:"levels"` // empty if the pods may not be read
	Lacks  []string `json:"lacks"`  // what the pool asks for
}

// PoolFacts are the objects that a PoolDetail is made from.
type PoolFacts struct {
	Pool    *tidekeeperv1.NodePool
	Members []corev1.Node
	// Pods by node; nil if they may not be read.
	Pods   map[string][]*corev1.Pod
	Events []corev1.Event
}

// PoolDetailOf returns what is shown of one pool at a time.
func PoolDetailOf(f PoolFacts, now time.Time) (PoolDetail, error) {
	selector, err := plan.Selector(f.Pool)
	if err != nil {
		return PoolDetail{}, err
	}
	d := PoolDetail{
		Pool: PoolOf(f.Pool, now), Selector: selector.String(), Settings: settingsOf(f.Pool), Members: []Member{}, Events: Events(f.Events),
	}
	for i := range f.Members {
		d.Members = append(d.Members, memberOf(f, &f.Members[i]))
	}
	slices.SortStableFunc(d.Members, func(a, b Member) int {
		if d := b.fullest() - a.fullest(); d != 0 {
			return int(d)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return d, nil
}

func memberOf(f PoolFacts, node *corev1.Node) Member {
	m := Member{Name: node.Name, Lacks: missingSettings(f.Pool, node), Levels: []Level{}}
	for _, c := range node.Status.Conditions {
		m.Ready = m.Ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	if f.Pods != nil {
		requested, percent := resources.Level(node, f.Pods[node.Name])
		m.Levels = levels(percent, requested, node.Status.Allocatable)
	}
	return m
}

// fullest is the highest level of a node.
func (m *Member) fullest() (most int32) {
	for _, l := range m.Levels {
		most = max(most, l.Percent)
	}
	return most
}
