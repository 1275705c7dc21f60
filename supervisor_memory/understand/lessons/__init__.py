"""Read a lesson from a failed call of a tool and the working one after. Rules alone, pure.

A lesson holds what was different between the two calls, and the essence of the error in fixed words. It is
taken without a person where each difference is of a kind that can say neither whom, nor where, nor what to do
(`doubts`); what the error bears out otherwise waits, and what no error speaks of is no lesson.
"""
