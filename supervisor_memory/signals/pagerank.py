"""Personalised PageRank over a small graph: what is near some nodes, by all ways at once."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory.signals.index import Rows

Shares: TypeAlias = npt.NDArray[np.float64]
_ROUNDS = 200


def pagerank(
    ends: tuple[Rows, Rows],
    weights: Shares,
    reset: Shares,
    *,
    damping: float,
    groups: tuple[Rows, Rows] | None = None,
    tolerance: float = 1e-9,
) -> Shares:
    """How often a walker is at each node who goes on with a chance of `damping`, and else begins anew.

    Args:
        ends: The nodes that each edge joins; it is walked both ways.
        weights: Of the edges, above 0.
        reset: How likely the walk begins at each node, up to a factor; none below 0, and one above.
        damping: In [0, 1). As igraph has it: 0.5 begins anew half of the time.
        groups: Group by group the nodes that are all joined to each other, by edges of weight 1: the number
            of the group, and the node, which is in it once. None: there are none.
        tolerance: The walk is done when all nodes together change by less.

    Source: Page et al. 1999; Haveliwala 2002.
    """
    one, other = (np.concatenate([ends[a], ends[b]]) for a, b in ((0, 1), (1, 0)))
    both = np.concatenate([weights, weights])
    count = len(reset)
    group, member = groups if groups is not None else (one[:0], one[:0])
    within = np.bincount(member, minlength=count)  # the groups of a node
    others = np.bincount(group)[group] - 1.0
    degree = np.bincount(one, both, minlength=count) + np.bincount(member, others, minlength=count)
    is_end = degree == 0
    start: Shares = reset / reset.sum()
    at = start
    for _ in range(_ROUNDS):
        share = np.divide(at, degree, out=np.zeros(count), where=~is_end)
        going = np.bincount(other, both * share[one], minlength=count)
        if len(group):  # all of a group goes to each of its nodes, but what came from there
            whole = np.bincount(group, share[member])
            going = going + np.bincount(member, whole[group], minlength=count) - within * share
        then: Shares = damping * going + (1 - damping + damping * at[is_end].sum()) * start
        if np.abs(then - at).sum() < tolerance:
            return then
        at = then
    return at
