//! Expressions with symbolic extents: evaluated with several values of the symbols.

use super::Calculator;
use crate::explain::Explanation;
use crate::extents::{Extents, TRIALS};
use crate::refusal::Refusal;
use crate::value::Value;

impl Calculator<'_> {
    /// The value as a text of symbols, if it is one expression of them for all their values.
    pub(super) fn evaluate_symbolically(&mut self) -> Result<Value, Refusal> {
        self.find_extents();
        let mut texts = Vec::new();
        let mut refusals = Vec::new();
        let mut explanations = Vec::new();
        for trial in 0..TRIALS {
            let mut calculator = self.again(self.extents.with_trial(trial));
            match calculator.evaluate_once() {
                Ok(value) => texts.push(calculator.shown(&value)),
                Err(refusal) => refusals.push((trial, refusal)),
            }
            let shown = |text: &Explanation| calculator.symbols.named(&text.to_string());
            explanations.push(calculator.explanations().iter().map(shown).collect());
            self.symbols = calculator.symbols;
        }
        if let Some((trial, first)) = refusals.first() {
            return Err(self.refused(*trial, first, &refusals));
        }
        self.explanations.replace(self.merged(&explanations));
        let text = self.extents.merged(&texts).ok_or_else(|| {
            Refusal::new(format!(
                "the result is no expression of the symbols: with {} it is {}, and with {} it is {}",
                self.extents.with_trial(0).condition(),
                texts[0],
                self.extents.with_trial(TRIALS - 1).condition(),
                texts[TRIALS - 1]
            ))
        })?;
        Ok(Value::Symbolic(text))
    }

    /// The first refusal, with the symbols' names in it if the expression is refused alike for all primes.
    fn refused(&self, trial: usize, first: &Refusal, all: &[(usize, Refusal)]) -> Refusal {
        let texts = all
            .iter()
            .take(TRIALS - 1)
            .map(|(_, refusal)| refusal.message.clone());
        let texts: Vec<String> = texts.collect();
        let named = (texts.len() == TRIALS - 1)
            .then(|| self.extents.merged(&texts))
            .flatten();
        let condition = self.extents.with_trial(trial).condition();
        Refusal {
            message: named.unwrap_or_else(|| format!("with {condition}: {}", first.message)),
            ..*first
        }
    }

    /// The same expression, to be evaluated again.
    fn again(&self, extents: Extents) -> Self {
        let mut calculator = Calculator::new(self.reader.text(), self.options);
        if self.explanations.are_recorded() {
            calculator = calculator.explaining();
        }
        calculator.extents = extents;
        calculator
    }

    /// Evaluates until no name is found any more to be an extent. A stride may have the name of a later extent.
    fn find_extents(&mut self) {
        loop {
            let mut calculator = self.again(self.extents.clone());
            // A refusal is found again later.
            let _ = calculator.evaluate_once();
            let is_complete = !calculator.extents.has_more_than(&self.extents);
            self.extents = calculator.extents;
            if is_complete {
                return;
            }
        }
    }

    /// The lines of explanations that are the same for all values of the symbols.
    fn merged(&self, trials: &[Vec<String>]) -> Vec<Explanation> {
        let operations = trials.iter().map(Vec::len).min().unwrap_or_default();
        let merged = (0..operations).map(|operation| {
            let lines: Vec<Vec<&str>> = trials
                .iter()
                .map(|texts| texts[operation].lines().collect())
                .collect();
            let count = lines.iter().map(Vec::len).min().unwrap_or_default();
            let merged = (0..count).filter_map(|line| {
                let texts: Vec<String> = lines.iter().map(|lines| lines[line].to_owned()).collect();
                self.extents.merged(&texts)
            });
            Explanation::of(merged.collect())
        });
        merged.collect()
    }
}
