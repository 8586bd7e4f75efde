//! Flags arrive as they were passed.

use cutlet_host::Result;
use cutlet_instructions::PTX;
use cutlet_instructions::launched::flags::flags;

use crate::devices;

#[test]
fn flags_arrive_as_they_were_passed() -> Result<()> {
    for device in devices() {
        let function = device.load(&PTX, &flags)?;
        let stream = device.stream()?;
        for bits in 0..8 {
            let [first, second, third] = [1, 2, 4].map(|bit| bits & bit != 0);
            let mut found = stream.zeroed::<u32>(4)?;
            // SAFETY: there are four elements.
            unsafe { stream.launch(&function, 1, (first, 77u32, second, &mut found, third))? };
            let expected = [u32::from(first), 77, u32::from(second), u32::from(third)];
            assert_eq!(stream.download(&found)?, expected);
        }
    }
    Ok(())
}
