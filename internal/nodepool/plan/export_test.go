// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// PlanWith exports planWith to tests.
var PlanWith = planWith

// Fits exports fits to tests.
func (p *NodePlan) Fits(node *corev1.Node) bool { return p.fits(node) }
